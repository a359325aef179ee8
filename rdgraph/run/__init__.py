"""Running an equation: `lowering/` to a vector field, `solvers/` to trajectories, `engines/` on one machine or a
cluster.

fields:       VectorField, compile_field
solutions:    Solution, RunStatus, ProgressBar, Callback
large graphs: propagate, Powers
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph.run.lowering.compiled_field import compile_field as compile_field
    from rdgraph.run.lowering.vector_field import VectorField as VectorField
    from rdgraph.run.solvers.feature_powers import Powers as Powers
    from rdgraph.run.solvers.feature_powers import propagate as propagate
    from rdgraph.run.solvers.solution import RunStatus as RunStatus
    from rdgraph.run.solvers.solution import Solution as Solution
    from rdgraph.run.solvers.trackers import Callback as Callback
    from rdgraph.run.solvers.trackers import ProgressBar as ProgressBar

__all__, __getattr__, __dir__ = lazy_door(__name__)

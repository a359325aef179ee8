"""Patterns of several fields: steady states, dispersion, Turing's conditions, thresholds.

answers: Dispersion, JointDispersion, critical_ratio
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph.theory.patterns.dispersion import Dispersion as Dispersion
    from rdgraph.theory.patterns.joint_dispersion import JointDispersion as JointDispersion
    from rdgraph.theory.patterns.turing_analysis import critical_ratio as critical_ratio

__all__, __getattr__, __dir__ = lazy_door(__name__)

"""Training: `ensemble` many networks as one program, `trainer`, `planner`, `checkpoint`.

networks: Ensemble
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.training.ensemble import Ensemble as Ensemble

__all__, __getattr__, __dir__ = lazy_door(__name__)

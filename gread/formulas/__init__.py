"""A learned function of trained networks put into a formula, which is trained in its place.

results: DistilledNetwork
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.formulas.distilled_network import DistilledNetwork as DistilledNetwork

__all__, __getattr__, __dir__ = lazy_door(__name__)

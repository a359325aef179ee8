"""Formulas for the learned functions of trained networks, retrained in their place.

results: DistilledNetwork
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from gread.formulas.distilled_network import DistilledNetwork as DistilledNetwork

__all__, __getattr__, __dir__ = lazy_door(__name__)

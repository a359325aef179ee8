"""Phase diagrams over two coefficients: predicted, simulated, with closed-form borders.

borders:  stability_borders, roughness_borders, Border
diagrams: PhaseDiagram, ReactionDiagram
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from analysis.phases.diagram import Border as Border
    from analysis.phases.diagram import PhaseDiagram as PhaseDiagram
    from analysis.phases.diagram import roughness_borders as roughness_borders
    from analysis.phases.diagram import stability_borders as stability_borders
    from analysis.phases.reaction_grid import ReactionDiagram as ReactionDiagram

__all__, __getattr__, __dir__ = lazy_door(__name__)

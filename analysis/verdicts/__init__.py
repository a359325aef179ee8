"""Verdicts: asymptotics of modes, proven statements, and whether a system oversmooths.

verdicts: OversmoothingVerdict, EnergyFate, EnergyStatement
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from analysis.verdicts.energy_fates import EnergyFate as EnergyFate
    from analysis.verdicts.statements import EnergyStatement as EnergyStatement
    from analysis.verdicts.verdict import OversmoothingVerdict as OversmoothingVerdict

__all__, __getattr__, __dir__ = lazy_door(__name__)

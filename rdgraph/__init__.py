"""rdgraph: graph reaction-diffusion systems dH/dt = -alpha L H + beta r(H), from one line of maths.

language:   parse, System, catalogue, equivalent, Derivation, derivation
spectra:    symbol, response, classify, fastest_frequency, growth_rate
regularity: lipschitz_global, lipschitz_local, one_sided, existence, invariant_box, step_limit
more:       identify, conserved, energy_law, reaction_flow, euler_map
verdicts:   analyse, preflight, verify
errors:     RdgraphError, LanguageError, NotApplicable, Undecided, AssumptionError, UnknownName
"""

from rdgraph.analyse import Analysis, analyse
from rdgraph.boxes import invariant_box
from rdgraph.catalog import catalogue
from rdgraph.claims import Claim, verify
from rdgraph.conserve import conserved, energy_law
from rdgraph.derive import Derivation, derivation
from rdgraph.equivalence import Equivalence, equivalent
from rdgraph.errors import AssumptionError, LanguageError, NotApplicable, RdgraphError, Undecided, UnknownName
from rdgraph.existence import existence
from rdgraph.flows import reaction_flow
from rdgraph.identify import identify
from rdgraph.lipschitz import lipschitz_global, lipschitz_local, one_sided
from rdgraph.maps import euler_map
from rdgraph.parse import parse
from rdgraph.preflight import Report, preflight
from rdgraph.spectral import classify, fastest_frequency, growth_rate, response, symbol
from rdgraph.steps import step_limit
from rdgraph.system import System

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "AssumptionError",
    "Claim",
    "Derivation",
    "Equivalence",
    "LanguageError",
    "NotApplicable",
    "RdgraphError",
    "Report",
    "System",
    "Undecided",
    "UnknownName",
    "analyse",
    "catalogue",
    "classify",
    "conserved",
    "derivation",
    "energy_law",
    "equivalent",
    "euler_map",
    "existence",
    "fastest_frequency",
    "growth_rate",
    "identify",
    "invariant_box",
    "lipschitz_global",
    "lipschitz_local",
    "one_sided",
    "parse",
    "preflight",
    "reaction_flow",
    "response",
    "step_limit",
    "symbol",
    "verify",
]

"""rdgraph: graph reaction-diffusion systems dH/dt = -alpha L H + beta r(H), from one line of maths.

language:   parse, System, catalogue, equivalent, Derivation, derivation
spectra:    symbol, response, classify, fastest_frequency, growth_rate
regularity: lipschitz_global, lipschitz_local, one_sided, existence, invariant_box, step_limit
more:       identify, conserved, energy_law, reaction_flow, euler_map
verdicts:   analyse, preflight, verify, read_expression
graphs:     Graph, Operator, stack, generators
runs:       lower, VectorField, solve, Solution, Status, ProgressBar, Callback
errors:     RdgraphError, LanguageError, NotApplicable, Undecided, AssumptionError, UnknownName

What stands under graphs and runs needs numpy or torch and is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
from rdgraph.reading import read_expression
from rdgraph.spectral import classify, fastest_frequency, growth_rate, response, symbol
from rdgraph.steps import step_limit
from rdgraph.system import System

if TYPE_CHECKING:
    from rdgraph.graphs import generators
    from rdgraph.graphs.graph import Graph
    from rdgraph.graphs.sparse import Operator
    from rdgraph.graphs.stack import stack
    from rdgraph.integrators.solution import Solution, Status
    from rdgraph.integrators.solve import solve
    from rdgraph.integrators.trackers import Callback, ProgressBar
    from rdgraph.lowering.field import VectorField, lower

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "AssumptionError",
    "Callback",
    "Claim",
    "Derivation",
    "Equivalence",
    "Graph",
    "LanguageError",
    "NotApplicable",
    "Operator",
    "ProgressBar",
    "RdgraphError",
    "Report",
    "Solution",
    "Status",
    "System",
    "Undecided",
    "UnknownName",
    "VectorField",
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
    "generators",
    "growth_rate",
    "identify",
    "invariant_box",
    "lipschitz_global",
    "lipschitz_local",
    "lower",
    "one_sided",
    "parse",
    "preflight",
    "reaction_flow",
    "read_expression",
    "response",
    "solve",
    "stack",
    "step_limit",
    "symbol",
    "verify",
]

#: Where the names that are loaded on first use come from.
_ON_USE = {
    "Callback": "rdgraph.integrators.trackers",
    "Graph": "rdgraph.graphs.graph",
    "Operator": "rdgraph.graphs.sparse",
    "ProgressBar": "rdgraph.integrators.trackers",
    "Solution": "rdgraph.integrators.solution",
    "Status": "rdgraph.integrators.solution",
    "VectorField": "rdgraph.lowering.field",
    "lower": "rdgraph.lowering.field",
    "solve": "rdgraph.integrators.solve",
    "stack": "rdgraph.graphs.stack",
}


def __getattr__(name: str) -> object:
    if name == "generators":
        return import_module("rdgraph.graphs.generators")
    if name not in _ON_USE:
        raise AttributeError(f"module 'rdgraph' has no attribute {name!r}")
    value = getattr(import_module(_ON_USE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

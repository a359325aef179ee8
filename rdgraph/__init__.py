"""rdgraph: graph reaction-diffusion systems dH/dt = -alpha L H + beta r(H), from one line of maths.

language:   parse, System, catalogue, equivalent, Equivalence, Derivation, derivation, register_function,
            unregister_function
learned:    learned, forget_learned, LearnedFunction, LearnedValues
spectra:    symbol, response, classify, fastest_frequency, growth_rate
regularity: lipschitz_global, lipschitz_local, one_sided, existence, invariant_box, step_limit
more:       identify, conserved, energy_law, reaction_flow, euler_map, choose_method, MethodChoice
own:        register_method, unregister_method, Tableau, make_tableau, register_normalisation,
            unregister_normalisation
inverse:    fit, Fit, distil, Distillation, find_formula, Formula, FormulaSearch
patterns:   steady_states, dispersion, Dispersion, JointDispersion, turing, turing_threshold, critical_ratio
verdicts:   analyse, Analysis, preflight, Report, verify, Claim, read_expression
layers:     conform, recover, Conformity, Recovery
graphs:     Graph, Operator, stack, generators
pictures:   plot.response, plot.phase, plot.energy, plot.state, plot.animate
runs:       lower, VectorField, compile_field, solve, Solution, Status, ProgressBar, Callback, propagate, Powers
errors:     RdgraphError, LanguageError, NotApplicable, InvalidArgument, Undecided, AssumptionError, UnknownName

Every name is loaded when it is first asked for; what stands under graphs and runs needs numpy or torch.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph import plot as plot
    from rdgraph.claims import Claim, verify
    from rdgraph.conformance.conformity import Conformity, conform
    from rdgraph.conformance.recovery import Recovery, recover
    from rdgraph.distillation.formula_finding import find_formula
    from rdgraph.distillation.found_formula import Formula, FormulaSearch
    from rdgraph.distillation.state_distillation import Distillation, distil
    from rdgraph.errors import (
        AssumptionError,
        InvalidArgument,
        LanguageError,
        NotApplicable,
        RdgraphError,
        Undecided,
        UnknownName,
    )
    from rdgraph.graphs import generators
    from rdgraph.graphs.graph import Graph
    from rdgraph.graphs.operator import Operator
    from rdgraph.graphs.operator_stack import stack
    from rdgraph.identifiability.question import identify
    from rdgraph.identities.comparison import Equivalence
    from rdgraph.identities.derivations import Derivation, derivation
    from rdgraph.identities.equivalence import equivalent
    from rdgraph.identities.function_registration import register_function, unregister_function
    from rdgraph.identities.step_maps import euler_map
    from rdgraph.integrators.feature_powers import propagate
    from rdgraph.integrators.power_files import Powers
    from rdgraph.integrators.solution import Solution, Status
    from rdgraph.integrators.solver import solve
    from rdgraph.integrators.trackers import Callback, ProgressBar
    from rdgraph.inverse.fitted_values import Fit
    from rdgraph.inverse.fitting import fit
    from rdgraph.lowering.compiled_field import compile_field
    from rdgraph.lowering.vector_field import VectorField, lower
    from rdgraph.methods.registry import register_method, unregister_method
    from rdgraph.methods.runge_kutta import Tableau, make_tableau
    from rdgraph.normalisations.registry import register_normalisation, unregister_normalisation
    from rdgraph.patterns.critical_ratio import critical_ratio
    from rdgraph.patterns.dispersion import Dispersion, dispersion
    from rdgraph.patterns.joint_dispersion import JointDispersion
    from rdgraph.patterns.steady_states import steady_states
    from rdgraph.patterns.thresholds import turing_threshold
    from rdgraph.patterns.turing_analysis import turing
    from rdgraph.reports.findings import Report
    from rdgraph.reports.preflight_report import preflight
    from rdgraph.reports.summary import Analysis, analyse
    from rdgraph.syntax.formula_reader import read_expression
    from rdgraph.syntax.learned_function import LearnedFunction
    from rdgraph.syntax.learned_names import forget_learned, learned
    from rdgraph.syntax.learned_values import LearnedValues
    from rdgraph.systems.catalogue import catalogue
    from rdgraph.systems.parser import parse
    from rdgraph.systems.system import System
    from rdgraph.theory.conservation import conserved, energy_law
    from rdgraph.theory.filters import classify, fastest_frequency, growth_rate, response, symbol
    from rdgraph.theory.global_existence import existence
    from rdgraph.theory.invariant_boxes import invariant_box
    from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided
    from rdgraph.theory.method_choice import MethodChoice, choose_method
    from rdgraph.theory.reaction_flows import reaction_flow
    from rdgraph.theory.step_limits import step_limit
    from rdgraph.version import __version__

__all__ = [
    "Analysis",
    "AssumptionError",
    "Callback",
    "Claim",
    "Conformity",
    "Derivation",
    "Dispersion",
    "Distillation",
    "Equivalence",
    "Fit",
    "Formula",
    "FormulaSearch",
    "Graph",
    "InvalidArgument",
    "JointDispersion",
    "LanguageError",
    "LearnedFunction",
    "LearnedValues",
    "MethodChoice",
    "NotApplicable",
    "Operator",
    "Powers",
    "ProgressBar",
    "RdgraphError",
    "Recovery",
    "Report",
    "Solution",
    "Status",
    "System",
    "Tableau",
    "Undecided",
    "UnknownName",
    "VectorField",
    "__version__",
    "analyse",
    "catalogue",
    "choose_method",
    "classify",
    "compile_field",
    "conform",
    "conserved",
    "critical_ratio",
    "derivation",
    "dispersion",
    "distil",
    "energy_law",
    "equivalent",
    "euler_map",
    "existence",
    "fastest_frequency",
    "find_formula",
    "fit",
    "forget_learned",
    "generators",
    "growth_rate",
    "identify",
    "invariant_box",
    "learned",
    "lipschitz_global",
    "lipschitz_local",
    "lower",
    "make_tableau",
    "one_sided",
    "parse",
    "preflight",
    "propagate",
    "reaction_flow",
    "read_expression",
    "recover",
    "register_function",
    "register_method",
    "register_normalisation",
    "response",
    "solve",
    "stack",
    "steady_states",
    "step_limit",
    "symbol",
    "turing",
    "turing_threshold",
    "unregister_function",
    "unregister_method",
    "unregister_normalisation",
    "verify",
]

#: Where every name comes from; it is loaded when it is first asked for.
_ON_USE = {
    "Analysis": "rdgraph.reports.summary",
    "AssumptionError": "rdgraph.errors",
    "Callback": "rdgraph.integrators.trackers",
    "Claim": "rdgraph.claims.registry",
    "Conformity": "rdgraph.conformance.conformity",
    "Derivation": "rdgraph.identities.derivations",
    "Dispersion": "rdgraph.patterns.dispersion",
    "Distillation": "rdgraph.distillation.state_distillation",
    "Equivalence": "rdgraph.identities.comparison",
    "Fit": "rdgraph.inverse.fitted_values",
    "Formula": "rdgraph.distillation.found_formula",
    "FormulaSearch": "rdgraph.distillation.found_formula",
    "Graph": "rdgraph.graphs.graph",
    "InvalidArgument": "rdgraph.errors",
    "JointDispersion": "rdgraph.patterns.joint_dispersion",
    "LanguageError": "rdgraph.errors",
    "LearnedFunction": "rdgraph.syntax.learned_function",
    "LearnedValues": "rdgraph.syntax.learned_values",
    "MethodChoice": "rdgraph.theory.method_choice",
    "NotApplicable": "rdgraph.errors",
    "Operator": "rdgraph.graphs.operator",
    "Powers": "rdgraph.integrators.power_files",
    "ProgressBar": "rdgraph.integrators.trackers",
    "RdgraphError": "rdgraph.errors",
    "Recovery": "rdgraph.conformance.recovery",
    "Report": "rdgraph.reports.findings",
    "Solution": "rdgraph.integrators.solution",
    "Status": "rdgraph.integrators.solution",
    "System": "rdgraph.systems.system",
    "Tableau": "rdgraph.methods.runge_kutta",
    "Undecided": "rdgraph.errors",
    "UnknownName": "rdgraph.errors",
    "VectorField": "rdgraph.lowering.vector_field",
    "__version__": "rdgraph.version",
    "analyse": "rdgraph.reports.summary",
    "catalogue": "rdgraph.systems.catalogue",
    "choose_method": "rdgraph.theory.method_choice",
    "classify": "rdgraph.theory.filters",
    "compile_field": "rdgraph.lowering.compiled_field",
    "conform": "rdgraph.conformance.conformity",
    "conserved": "rdgraph.theory.conservation",
    "critical_ratio": "rdgraph.patterns.critical_ratio",
    "derivation": "rdgraph.identities.derivations",
    "dispersion": "rdgraph.patterns.dispersion",
    "distil": "rdgraph.distillation.state_distillation",
    "energy_law": "rdgraph.theory.conservation",
    "equivalent": "rdgraph.identities.equivalence",
    "euler_map": "rdgraph.identities.step_maps",
    "existence": "rdgraph.theory.global_existence",
    "fastest_frequency": "rdgraph.theory.filters",
    "find_formula": "rdgraph.distillation.formula_finding",
    "fit": "rdgraph.inverse.fitting",
    "forget_learned": "rdgraph.syntax.learned_names",
    "generators": "rdgraph.graphs.generators",
    "growth_rate": "rdgraph.theory.filters",
    "identify": "rdgraph.identifiability.question",
    "invariant_box": "rdgraph.theory.invariant_boxes",
    "learned": "rdgraph.syntax.learned_names",
    "lipschitz_global": "rdgraph.theory.lipschitz",
    "lipschitz_local": "rdgraph.theory.lipschitz",
    "lower": "rdgraph.lowering.vector_field",
    "make_tableau": "rdgraph.methods.runge_kutta",
    "one_sided": "rdgraph.theory.lipschitz",
    "parse": "rdgraph.systems.parser",
    "plot": "rdgraph.plot",
    "preflight": "rdgraph.reports.preflight_report",
    "propagate": "rdgraph.integrators.feature_powers",
    "reaction_flow": "rdgraph.theory.reaction_flows",
    "read_expression": "rdgraph.syntax.formula_reader",
    "recover": "rdgraph.conformance.recovery",
    "register_function": "rdgraph.identities.function_registration",
    "register_method": "rdgraph.methods.registry",
    "register_normalisation": "rdgraph.normalisations.registry",
    "response": "rdgraph.theory.filters",
    "solve": "rdgraph.integrators.solver",
    "stack": "rdgraph.graphs.operator_stack",
    "steady_states": "rdgraph.patterns.steady_states",
    "step_limit": "rdgraph.theory.step_limits",
    "symbol": "rdgraph.theory.filters",
    "turing": "rdgraph.patterns.turing_analysis",
    "turing_threshold": "rdgraph.patterns.thresholds",
    "unregister_function": "rdgraph.identities.function_registration",
    "unregister_method": "rdgraph.methods.registry",
    "unregister_normalisation": "rdgraph.normalisations.registry",
    "verify": "rdgraph.claims",
}

__getattr__, __dir__ = lazy_door(__name__, _ON_USE)

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
    from rdgraph.graphs.operator import Operator, stack
    from rdgraph.infer.fit.fitted_values import Fit
    from rdgraph.infer.fit.fitting import fit
    from rdgraph.infer.formulas.formula_finding import Formula, FormulaSearch, find_formula
    from rdgraph.infer.formulas.state_distillation import Distillation, distil
    from rdgraph.infer.layers.conformity import Conformity, conform
    from rdgraph.infer.layers.recovery import Recovery, recover
    from rdgraph.language.formula_reader import read_expression
    from rdgraph.language.reader import forget_learned, learned
    from rdgraph.reports.claims import Claim, verify
    from rdgraph.reports.findings import Report
    from rdgraph.reports.preflight_report import preflight
    from rdgraph.reports.summary import Analysis, analyse
    from rdgraph.run.lowering.compiled_field import compile_field
    from rdgraph.run.lowering.vector_field import VectorField, lower
    from rdgraph.run.solvers.feature_powers import Powers, propagate
    from rdgraph.run.solvers.solution import Solution, Status
    from rdgraph.run.solvers.solver import solve
    from rdgraph.run.solvers.trackers import Callback, ProgressBar
    from rdgraph.systems.catalogue import catalogue
    from rdgraph.systems.parser import parse
    from rdgraph.systems.system import System
    from rdgraph.theory.conservation import conserved, energy_law
    from rdgraph.theory.equality.derivations import Derivation, derivation, euler_map
    from rdgraph.theory.equality.equality_proof import Equivalence
    from rdgraph.theory.equality.equivalence import equivalent
    from rdgraph.theory.equality.function_registration import register_function, unregister_function
    from rdgraph.theory.filters import classify, fastest_frequency, growth_rate, response, symbol
    from rdgraph.theory.global_existence import existence
    from rdgraph.theory.identifiability.question import identify
    from rdgraph.theory.invariant_boxes import invariant_box
    from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided
    from rdgraph.theory.method_choice import MethodChoice, choose_method
    from rdgraph.theory.patterns.critical_ratio import critical_ratio
    from rdgraph.theory.patterns.dispersion import Dispersion, dispersion
    from rdgraph.theory.patterns.joint_dispersion import JointDispersion
    from rdgraph.theory.patterns.steady_states import steady_states
    from rdgraph.theory.patterns.thresholds import turing_threshold
    from rdgraph.theory.patterns.turing_analysis import turing
    from rdgraph.theory.reaction_flows import reaction_flow
    from rdgraph.theory.step_limits import step_limit
    from rdgraph.version import __version__
    from rdgraph.vocabulary.learned_functions import LearnedFunction, LearnedValues
    from rdgraph.vocabulary.methods import Tableau, make_tableau, register_method, unregister_method
    from rdgraph.vocabulary.normalisations import register_normalisation, unregister_normalisation

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
    "Callback": "rdgraph.run.solvers.trackers",
    "Claim": "rdgraph.reports.claims.claim_records",
    "Conformity": "rdgraph.infer.layers.conformity",
    "Derivation": "rdgraph.theory.equality.derivations",
    "Dispersion": "rdgraph.theory.patterns.dispersion",
    "Distillation": "rdgraph.infer.formulas.state_distillation",
    "Equivalence": "rdgraph.theory.equality.equality_proof",
    "Fit": "rdgraph.infer.fit.fitted_values",
    "Formula": "rdgraph.infer.formulas.formula_finding",
    "FormulaSearch": "rdgraph.infer.formulas.formula_finding",
    "Graph": "rdgraph.graphs.graph",
    "InvalidArgument": "rdgraph.errors",
    "JointDispersion": "rdgraph.theory.patterns.joint_dispersion",
    "LanguageError": "rdgraph.errors",
    "LearnedFunction": "rdgraph.vocabulary.learned_functions",
    "LearnedValues": "rdgraph.vocabulary.learned_functions",
    "MethodChoice": "rdgraph.theory.method_choice",
    "NotApplicable": "rdgraph.errors",
    "Operator": "rdgraph.graphs.operator",
    "Powers": "rdgraph.run.solvers.feature_powers",
    "ProgressBar": "rdgraph.run.solvers.trackers",
    "RdgraphError": "rdgraph.errors",
    "Recovery": "rdgraph.infer.layers.recovery",
    "Report": "rdgraph.reports.findings",
    "Solution": "rdgraph.run.solvers.solution",
    "Status": "rdgraph.run.solvers.solution",
    "System": "rdgraph.systems.system",
    "Tableau": "rdgraph.vocabulary.methods",
    "Undecided": "rdgraph.errors",
    "UnknownName": "rdgraph.errors",
    "VectorField": "rdgraph.run.lowering.vector_field",
    "__version__": "rdgraph.version",
    "analyse": "rdgraph.reports.summary",
    "catalogue": "rdgraph.systems.catalogue",
    "choose_method": "rdgraph.theory.method_choice",
    "classify": "rdgraph.theory.filters",
    "compile_field": "rdgraph.run.lowering.compiled_field",
    "conform": "rdgraph.infer.layers.conformity",
    "conserved": "rdgraph.theory.conservation",
    "critical_ratio": "rdgraph.theory.patterns.critical_ratio",
    "derivation": "rdgraph.theory.equality.derivations",
    "dispersion": "rdgraph.theory.patterns.dispersion",
    "distil": "rdgraph.infer.formulas.state_distillation",
    "energy_law": "rdgraph.theory.conservation",
    "equivalent": "rdgraph.theory.equality.equivalence",
    "euler_map": "rdgraph.theory.equality.derivations",
    "existence": "rdgraph.theory.global_existence",
    "fastest_frequency": "rdgraph.theory.filters",
    "find_formula": "rdgraph.infer.formulas.formula_finding",
    "fit": "rdgraph.infer.fit.fitting",
    "forget_learned": "rdgraph.language.reader",
    "generators": "rdgraph.graphs.generators",
    "growth_rate": "rdgraph.theory.filters",
    "identify": "rdgraph.theory.identifiability.question",
    "invariant_box": "rdgraph.theory.invariant_boxes",
    "learned": "rdgraph.language.reader",
    "lipschitz_global": "rdgraph.theory.lipschitz",
    "lipschitz_local": "rdgraph.theory.lipschitz",
    "lower": "rdgraph.run.lowering.vector_field",
    "make_tableau": "rdgraph.vocabulary.methods",
    "one_sided": "rdgraph.theory.lipschitz",
    "parse": "rdgraph.systems.parser",
    "plot": "rdgraph.plot",
    "preflight": "rdgraph.reports.preflight_report",
    "propagate": "rdgraph.run.solvers.feature_powers",
    "reaction_flow": "rdgraph.theory.reaction_flows",
    "read_expression": "rdgraph.language.formula_reader",
    "recover": "rdgraph.infer.layers.recovery",
    "register_function": "rdgraph.theory.equality.function_registration",
    "register_method": "rdgraph.vocabulary.methods",
    "register_normalisation": "rdgraph.vocabulary.normalisations",
    "response": "rdgraph.theory.filters",
    "solve": "rdgraph.run.solvers.solver",
    "stack": "rdgraph.graphs.operator",
    "steady_states": "rdgraph.theory.patterns.steady_states",
    "step_limit": "rdgraph.theory.step_limits",
    "symbol": "rdgraph.theory.filters",
    "turing": "rdgraph.theory.patterns.turing_analysis",
    "turing_threshold": "rdgraph.theory.patterns.thresholds",
    "unregister_function": "rdgraph.theory.equality.function_registration",
    "unregister_method": "rdgraph.vocabulary.methods",
    "unregister_normalisation": "rdgraph.vocabulary.normalisations",
    "verify": "rdgraph.reports.claims",
}

__getattr__, __dir__ = lazy_door(__name__, _ON_USE)

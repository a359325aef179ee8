"""rdgraph: graph reaction-diffusion systems dH/dt = -alpha L H + beta r(H), from one line of maths.

language:  parse, System, catalogue, equivalent, verify
questions: analyse, preflight, classify, existence, invariant_box, lipschitz_global, step_limit, Answer, Status
patterns:  steady_states, dispersion, turing, turing_threshold
graphs:    Graph, generators
runs:      lower, solve
inverse:   fit, conform, recover
extending: register_function, register_method, register_normalisation
pictures:  plot
modules:   theory, patterns, infer, run, graphs, vocabulary, reports, errors, testing

Further names are in the modules: `rd.theory.conserved`, `rd.patterns.critical_ratio`, `rd.infer.distil`,
`rd.run.propagate`, `rd.errors.NotApplicable`. Every name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph import errors as errors
    from rdgraph import graphs as graphs
    from rdgraph import infer as infer
    from rdgraph import plot as plot
    from rdgraph import reports as reports
    from rdgraph import run as run
    from rdgraph import testing as testing
    from rdgraph import theory as theory
    from rdgraph import vocabulary as vocabulary
    from rdgraph.answers import Answer as Answer
    from rdgraph.answers import Status as Status
    from rdgraph.graphs import generators as generators
    from rdgraph.graphs.graph import Graph as Graph
    from rdgraph.infer.fit.fitting import fit as fit
    from rdgraph.infer.layers.conformity import conform as conform
    from rdgraph.infer.layers.recovery import recover as recover
    from rdgraph.reports.claims import verify as verify
    from rdgraph.reports.preflight_report import preflight as preflight
    from rdgraph.reports.summary import analyse as analyse
    from rdgraph.run.lowering.vector_field import lower as lower
    from rdgraph.run.solvers.solver import solve as solve
    from rdgraph.systems.catalogue import catalogue as catalogue
    from rdgraph.systems.parser import parse as parse
    from rdgraph.systems.system import System as System
    from rdgraph.theory import patterns as patterns
    from rdgraph.theory.equality.equivalence import equivalent as equivalent
    from rdgraph.theory.equality.function_registration import register_function as register_function
    from rdgraph.theory.filters import classify as classify
    from rdgraph.theory.global_existence import existence as existence
    from rdgraph.theory.invariant_boxes import invariant_box as invariant_box
    from rdgraph.theory.lipschitz import lipschitz_global as lipschitz_global
    from rdgraph.theory.patterns.dispersion import dispersion as dispersion
    from rdgraph.theory.patterns.steady_states import steady_states as steady_states
    from rdgraph.theory.patterns.thresholds import turing_threshold as turing_threshold
    from rdgraph.theory.patterns.turing_analysis import turing as turing
    from rdgraph.theory.step_limits import step_limit as step_limit
    from rdgraph.version import __version__ as __version__
    from rdgraph.vocabulary.methods import register_method as register_method
    from rdgraph.vocabulary.normalisations import register_normalisation as register_normalisation

__all__, __getattr__, __dir__ = lazy_door(__name__)

"""The studies by name: one record each, registered here; a study of one's own is registered by `register_study`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from rdgraph.errors import InvalidArgument
from rdgraph.records import Records
from studies.runs.libraries import EXTRAS, require
from studies.runs.setting_limits import Limits, no_limits
from studies.runs.study import Study

#: The registered studies by name, in the order of registration.
STUDIES: Records[Study] = Records("study", tuple)


def register_study(study: Study) -> Study:
    """Add a study, so that `rdgraph study NAME` and `find_study(NAME)` know it.

    Args:
        study: the record; its name must be new.

    Returns:
        The same record.

    Raises:
        InvalidArgument: for what is no `Study`, a name that is taken, or an extra this package does not have.

    Example:
        >>> mine = register_study(Study("two-and-two", "A sum", "What is 2 + 2?", lambda run: run.results([{"x": 4}])))
        >>> find_study("two-and-two").question
        'What is 2 + 2?'
        >>> unregister_study("two-and-two")
    """
    if not isinstance(study, Study):
        raise InvalidArgument(f"expected a Study, got {type(study).__name__}; make one with studies.Study(...)")
    if study.extra is not None and study.extra not in EXTRAS:
        raise InvalidArgument(f"expected an extra among {', '.join(EXTRAS)}, got {study.extra!r}")
    return STUDIES.add(study)


def unregister_study(name: str) -> None:
    """Forget a study that was registered.

    Args:
        name: the name of the study.

    Raises:
        UnknownName: where no study has that name.

    Example:
        See `register_study`.
    """
    STUDIES.remove(name)


def find_study(name: str) -> Study:
    """The registered study of that name.

    Args:
        name: the name of the study, as `rdgraph study` lists it.

    Returns:
        Its record; nothing is imported or computed yet.

    Raises:
        UnknownName: where no study has that name; offers the closest one.

    Example:
        >>> find_study("grid").title
        'Diffusion and blurring-sharpening on a grid'
    """
    return STUDIES.find(name)


def require_libraries(study: Study) -> None:
    """Name the first library that a study needs and that is not installed, before anything is computed."""
    if study.extra is not None:
        require(f"the study {study.name}", study.extra)


def _on_use(module: str, function: str) -> Callable[[Any], Any]:
    """A function of a module that is imported when the function is called, so that a list of studies is quick."""

    def call(argument: Any) -> Any:
        return getattr(import_module(module), function)(argument)

    return call


def _limits_of(module: str) -> Limits:
    """The function `limits` of a module that is imported when it is called; none where it has none."""
    return lambda small: getattr(import_module(module), "limits", no_limits)(small)


def _register(name: str, folder: str, title: str, question: str, extra: str | None = None) -> None:
    """A study of this package: studies.FOLDER.study has `run(run)`, `settings(small)` and perhaps `limits(small)`."""
    module = f"studies.{folder}.study"
    run, settings = _on_use(module, "run"), _on_use(module, "settings")
    register_study(Study(name, title, question, run, settings, extra, limits=_limits_of(module)))


_register(
    "grid",
    "grid",
    "Diffusion and blurring-sharpening on a grid",
    "Does diffusion oversmooth a grid of one-dimensional features, while the blurring-sharpening equation (BS) seeks "
    "a balance between smoothing and sharpening, as the first figure of the GREAD paper says?",
    "torch",
)
_register(
    "oversmoothing",
    "oversmoothing",
    "Oversmoothing: energies of reaction-diffusion flows",
    "Does a reaction term keep the Dirichlet energy of a graph network bounded and away from zero, for which "
    "coefficients, and is it the flow or Euler's method that does it?",
    "gread",
)
_register(
    "trained-energy",
    "trained_energy",
    "Oversmoothing in trained networks: energies layer by layer",
    "Do trained networks of many layers lose their Dirichlet energy, GCN and GAT at once, GRAND later and GREAD not "
    "at all, and does a vector beta conserve more of it than a scalar one?",
    "gread",
)
_register(
    "response",
    "response",
    "Filter responses at the published settings",
    "Which frequencies do the linear systems of the catalogue damp and amplify at the end times and step sizes of the "
    "GREAD paper, and where does Euler's method amplify what the flow damps?",
)
_register(
    "discretisation",
    "discretisation",
    "Discretisation at the published settings",
    "At the end times, steps and solvers that the GREAD paper found best, is the computed thing still the ordinary "
    "differential equation, mode by mode?",
    "torch",
)
_register(
    "datasets",
    "datasets",
    "The data sets",
    "What are the graphs that the GREAD paper is measured on: how large, how homophilic, how are they split, does the "
    "paper's table describe them, and how many test nodes can be answered by looking up a twin in the training set?",
)
_register(
    "turing",
    "turing",
    "Turing patterns on graphs: predicted and simulated",
    "Do the eigenvalues of a graph's Laplacian predict for which coefficients a constant state gives way to a pattern, "
    "how fast it grows, and where the published thresholds of patterns on networks lie?",
    "torch",
)
_register(
    "atlas",
    "atlas",
    "An atlas of regimes",
    "Which regimes does a system of several fields have over two of its coefficients - stable, Turing, Hopf, both, "
    "oscillation death, blow-up - and does the linearisation tell them?",
    "torch",
)
_register(
    "classification",
    "classification",
    "The main tables: seven reactions on nine data sets",
    "With the settings that the GREAD paper prints, and in every reading of what it leaves open, are the accuracies "
    "and the ranking of its Tables 4, 7 and 8 reached?",
    "gread",
)
_register(
    "ablation",
    "ablation",
    "The ablations: adjacency, and kind and sign of beta",
    "Do the soft adjacency and a vector beta raise the accuracy, as Tables 5, 6, 20 and 21 of the GREAD paper say, and "
    "is it the vector that helps or the sign it may have?",
    "gread",
)
_register(
    "sensitivity",
    "sensitivity",
    "Sensitivity to the end time and to the step",
    "How does the accuracy of the reactions change with T and with the step of the solver, as Figures 3, 4, 7 and 8 of "
    "the GREAD paper show, and do small steps reach the exact flow?",
    "gread",
)
_register(
    "depth",
    "depth",
    "Many layers: GREAD-ST against GRAND++",
    "Does GREAD-ST keep its accuracy with 2 to 64 layers and stay ahead of GRAND++, as Tables 22 and 23 of the GREAD "
    "paper say, and what do the linear reactions do at 128 and 256?",
    "gread",
)
_register(
    "homophily",
    "homophily",
    "From heterophily to homophily on the synthetic Cora",
    "Are the reactions more accurate than MLP, GCN, GAT, GRAND, H2GCN and GPR-GNN at every homophily, without sudden "
    "drops, as Figure 6 of the GREAD paper shows?",
    "gread",
)
_register(
    "significance",
    "significance",
    "Is GREAD-BS better than GRAND?",
    "With ten seeds on every split, is GREAD-BS more accurate than GRAND on all nine data sets, as Table 24 of the "
    "GREAD paper says, by a test that takes account of shared splits and of the number of tests?",
    "gread",
)
_register(
    "runtime",
    "runtime",
    "Milliseconds of an epoch",
    "Does a reaction make an epoch on Cora little longer, as Figure 9 of the GREAD paper shows, and what does its cost "
    "grow with?",
    "gread",
)
_register(
    "embeddings",
    "embeddings",
    "States over the time of the equation",
    "Do the states of trained networks draw together in local clusters of one class from t = 0 to T, as Figures 2 and "
    "10 of the GREAD paper show?",
    "gread",
)
_register(
    "complexity",
    "complexity",
    "What a reaction costs",
    "Do products and seconds of the reactions grow with edges, channels and steps as the appendix on complexity of the "
    "GREAD paper states?",
    "gread",
)
_register(
    "wellposedness",
    "wellposedness",
    "Are the problems well posed that the networks solve?",
    "Which equations are Lipschitz or have solutions for all time, as the appendix on well-posedness of the GREAD "
    "paper says, and is that so for the networks that training gives?",
    "gread",
)
_register(
    "forensics",
    "forensics",
    "Why numbers are not reproduced",
    "For rows of Table 8 of the GREAD paper that are not reached with the printed settings, which completion of what "
    "the paper leaves open comes nearest, and does our code give what the authors' code gives?",
    "gread",
)

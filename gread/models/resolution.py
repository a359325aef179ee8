"""What a model leaves open, filled in: the links of its coefficients, and the method that follows from its equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from gread.settings.config import AUTO, Model
from gread.settings.equation import read_equation
from gread.settings.trials import Trial
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System
from rdgraph.theory.method_choice import choose_method
from rdgraph.theory.rate_bounds import rate_bound

#: The letter of an equation that stands for the training nodes.
TRUSTED = "M"
#: Kinds of letters that stand for numbers.
VALUED = (Kind.SCALAR, Kind.CHANNEL, Kind.NODE, Kind.MATRIX)
#: The nonlinear reactions of the GREAD paper, whose coefficients start as in its authors' code.
PUBLISHED = ("F", "AC", "Z")


def link_of(model: Model, name: str, kind: Kind) -> str:
    """sigmoid or free: how the parameter of a coefficient becomes its value.

    >>> link_of(Model(), "alpha", Kind.CHANNEL), link_of(Model(), "beta", Kind.CHANNEL)
    ('sigmoid', 'free')
    """
    declared = {"alpha": model.alpha_link, "beta": model.beta_link}.get(name, "auto")
    if declared != "auto":
        return declared
    return "sigmoid" if name == "alpha" or kind is Kind.SCALAR else "free"


def resolve_method(model: Model) -> tuple[Model, str]:
    """A model with a method and a step of its own, and why they were chosen; "" where the method was given.

    What the equation allows is asked of `rdgraph.theory.method_choice`. Attention makes A row-stochastic and not
    symmetric; attention that follows the state makes a linear equation none, so that it is stepped. A beta whose link
    is left open as well stays in (0, 1) where no bound of the slope holds for all states, since its sign may then
    decide whether H(t) blows up; in the reactions of the GREAD paper it stays free, as its authors have it.

    >>> chosen, reason = resolve_method(Model(reaction="-alpha*L@H + beta*tanh(H)"))
    >>> chosen.method, reason.partition(";")[0]
    ('rk4', 'the reaction beta*tanh(H) is nonlinear')
    >>> resolve_method(Model(method="euler", step=0.5))[1]
    ''
    >>> resolve_method(Model(reaction="-alpha*L@H + beta*H**2"))[0].beta_link
    'sigmoid'
    """
    return _chosen(model) if model.method == AUTO else (model, "")


@lru_cache(maxsize=256)
def _chosen(model: Model) -> tuple[Model, str]:
    normalisation = model.normalisation if model.adjacency == "original" else "row"
    choice = choose_method(
        model.system, model.time, normalisation=normalisation, stepped=model.adjacency == "live",
        undirected=find_normalisation(normalisation).is_symmetric,
    )  # fmt: skip
    step = None if choice.step is None else model.step or choice.step
    if model.beta_link == AUTO and _needs_sign(model.system, normalisation):
        told = f"{choice.reason}; beta in (0, 1), as no bound of the slope holds for all states"
        return model.resolved(choice.method, step, "sigmoid"), told
    return model.resolved(choice.method, step, model.beta_link), choice.reason


def _needs_sign(system: System, normalisation: str) -> bool:
    """Whether beta, per channel or node, is free in a field that may outgrow the state and is not the authors' own."""
    kind = system.letters.get("beta")
    if kind not in (Kind.CHANNEL, Kind.NODE):
        return False
    bound = rate_bound(system, normalisation)
    if bound.is_finite and not bound.is_local:
        return False
    alpha = system.coefficients.get("alpha", "scalar")
    return all(system.normal != read_equation(name, alpha, kind.value).normal for name in PUBLISHED)


def resolve_trials(trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """The trials with the methods that follow from their equations where these were left open, and the reasons."""
    resolved = [resolve_method(trial.config.model) for trial in trials]
    chosen = [
        replace(trial, config=replace(trial.config, model=model))
        for trial, (model, _) in zip(trials, resolved, strict=True)
    ]
    return chosen, [reason for _, reason in resolved]

"""The equation of a network: its system, the links of its coefficients, and the method that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from gread.settings.config import AUTO, Model
from gread.settings.trials import Trial
from rdgraph import parse
from rdgraph.syntax.tree import Kind
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.theory.method_choice import choose_method
from rdgraph.theory.rate_bounds import rate_bound

#: The letter of an equation that stands for the training nodes.
TRUSTED = "M"
#: Kinds of letters that stand for numbers.
VALUED = (Kind.SCALAR, Kind.CHANNEL, Kind.NODE, Kind.MATRIX)
#: The nonlinear reactions of the GREAD paper, whose coefficients start as in its authors' code.
PUBLISHED = ("F", "AC", "Z")


def make_system(model: Model) -> System:
    """The equation of a model, with alpha and beta of the declared kinds.

    >>> print(make_system(Model(reaction="ST", beta="channel")))
    -alpha*L@H + beta*H0 where beta channel
    """
    text = str(catalogue[model.reaction]) if model.reaction in catalogue else model.reaction
    letters = parse(text).coefficients
    kinds = {name: kind for name, kind in (("alpha", model.alpha), ("beta", model.beta)) if name in letters}
    return parse(text, {n: k for n, k in kinds.items() if letters[n] != k}) if kinds else parse(text)


def link_of(model: Model, name: str, kind: Kind) -> str:
    """sigmoid or free: how the parameter of a coefficient becomes its value.

    >>> link_of(Model(), "alpha", Kind.CHANNEL), link_of(Model(), "beta", Kind.CHANNEL)
    ('sigmoid', 'free')
    """
    declared = {"alpha": model.alpha_link, "beta": model.beta_link}.get(name, "auto")
    if declared != "auto":
        return declared
    return "sigmoid" if name == "alpha" or kind is Kind.SCALAR else "free"


@lru_cache(maxsize=256)
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
    if model.method != AUTO:
        return model, ""
    system, is_original = make_system(model), model.adjacency == "original"
    normalisation = model.normalisation if is_original else "row"
    choice = choose_method(
        system, model.time, normalisation=normalisation, undirected=normalisation in ("symmetric", "none"),
        stepped=model.adjacency == "live",
    )  # fmt: skip
    step = choice.step if model.step is None else model.step
    chosen = replace(model, method=choice.method, step=step if choice.step is not None else None)
    if model.beta_link == AUTO and _needs_sign(model, system, normalisation):
        told = f"{choice.reason}; beta in (0, 1), as no bound of the slope holds for all states"
        return replace(chosen, beta_link="sigmoid"), told
    return chosen, choice.reason


def _needs_sign(model: Model, system: System, normalisation: str) -> bool:
    """Whether beta, per channel or node, is free in a field that may outgrow the state and is not the authors' own."""
    if system.letters.get("beta") not in (Kind.CHANNEL, Kind.NODE):
        return False
    bound = rate_bound(system, normalisation)
    published = (make_system(replace(model, reaction=name)) for name in PUBLISHED)
    return (bound.is_local or not bound.is_finite) and all(system.normal != other.normal for other in published)


def resolve_trials(trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """The trials with the methods that follow from their equations where these were left open, and the reasons."""
    resolved = [resolve_method(trial.config.model) for trial in trials]
    chosen = [
        replace(trial, config=replace(trial.config, model=model))
        for trial, (model, _) in zip(trials, resolved, strict=True)
    ]
    return chosen, [reason for _, reason in resolved]

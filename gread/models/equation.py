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

#: The letter of an equation that stands for the training nodes.
TRUSTED = "M"
#: Kinds of letters that stand for numbers.
VALUED = (Kind.SCALAR, Kind.CHANNEL, Kind.NODE, Kind.MATRIX)


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
    symmetric; attention that follows the state makes a linear equation none, so that it is stepped.

    >>> chosen, reason = resolve_method(Model(reaction="-alpha*L@H + beta*tanh(H)"))
    >>> chosen.method, reason.partition(";")[0]
    ('rk4', 'the reaction beta*tanh(H) is nonlinear')
    >>> resolve_method(Model(method="euler", step=0.5))[1]
    ''
    """
    if model.method != AUTO:
        return model, ""
    is_original = model.adjacency == "original"
    normalisation = model.normalisation if is_original else "row"
    choice = choose_method(
        make_system(model), model.time, normalisation=normalisation, undirected=normalisation in ("symmetric", "none"),
        stepped=model.adjacency == "live",
    )  # fmt: skip
    step = choice.step if model.step is None else model.step
    return replace(model, method=choice.method, step=step if choice.step is not None else None), choice.reason


def resolve_trials(trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """The trials with the methods that follow from their equations where these were left open, and the reasons."""
    resolved = [resolve_method(trial.config.model) for trial in trials]
    chosen = [
        replace(trial, config=replace(trial.config, model=model))
        for trial, (model, _) in zip(trials, resolved, strict=True)
    ]
    return chosen, [reason for _, reason in resolved]

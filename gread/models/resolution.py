"""What a model leaves open, filled in: the links of its coefficients, and the method that follows from its equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

import torch
from torch import Tensor

from gread.settings.config import Config
from gread.settings.equation import read_equation
from gread.settings.gread_settings import AUTO, GreadSettings, share_equations
from gread.settings.trials import Trial, read_trials
from rdgraph.normalisations.registry import find_normalisation
from rdgraph.syntax.reader import usual_of_fields
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System
from rdgraph.theory.method_choice import choose_method
from rdgraph.theory.rate_bounds import rate_bound

#: The letter of an equation that stands for the training nodes.
TRUSTED = "M"
#: Links beside free: values in (0, 1), and in (-1, 0) for coefficients that are declared negative.
SIGMOID, NEGATED, FREE = "sigmoid", "negated sigmoid", "free"
#: The nonlinear reactions of the GREAD paper, whose coefficients start as in its authors' code.
PUBLISHED = ("F", "AC", "Z")


def link_of(model: GreadSettings, name: str, kind: Kind) -> str:
    """sigmoid, negated sigmoid or free: how the parameter of a coefficient becomes its value.

    A sign that is declared with the equation decides, unless the model has a link for the coefficient.

    >>> link_of(GreadSettings(), "alpha", Kind.CHANNEL), link_of(GreadSettings(), "beta", Kind.CHANNEL)
    ('sigmoid', 'free')
    >>> link_of(GreadSettings("u' = -Du*L@u + beta*v; v' = u where beta negative"), "beta", Kind.CHANNEL)
    'negated sigmoid'
    """
    declared = {"alpha": model.alpha_link, "beta": model.beta_link}.get(name, AUTO)
    if declared != AUTO:
        return declared
    if kind is Kind.MATRIX:
        return FREE
    stated = model.system.assumptions
    if name in stated.stated:
        return {"real": FREE, "negative": NEGATED, "nonpositive": NEGATED}.get(stated.sign(name), SIGMOID)
    is_diffusivity = name == "alpha" or name in usual_of_fields(model.system.fields)
    return SIGMOID if is_diffusivity or kind is Kind.SCALAR else FREE


def linked(parameter: Tensor, link: str) -> Tensor:
    """The values of a coefficient whose parameter has that link.

    >>> linked(torch.zeros(2), NEGATED)
    tensor([-0.5000, -0.5000])
    """
    if link == FREE:
        return parameter
    values = torch.sigmoid(parameter)
    return -values if link == NEGATED else values


def resolve_method(model: GreadSettings) -> tuple[GreadSettings, str]:
    """A model with a method and a step of its own, and why they were chosen; "" where the method was given.

    What the equation allows is asked of `rdgraph.theory.method_choice`. Attention makes A row-stochastic and not
    symmetric; attention that follows the state makes a linear equation none, so that it is stepped. A beta whose link
    is left open as well stays in (0, 1) where no bound of the slope holds for all states, since its sign may then
    decide whether H(t) blows up; in the reactions of the GREAD paper it stays free, as its authors have it.

    >>> chosen, reason = resolve_method(GreadSettings(reaction="-alpha*L@H + beta*tanh(H)"))
    >>> chosen.method, reason.partition(";")[0]
    ('rk4', 'the reaction beta*tanh(H) is nonlinear')
    >>> resolve_method(GreadSettings(method="euler", step=0.5))[1]
    ''
    >>> resolve_method(GreadSettings(reaction="-alpha*L@H + beta*H**2"))[0].beta_link
    'sigmoid'
    """
    return _chosen(model) if model.method == AUTO else (model, "")


@lru_cache(maxsize=256)
def _chosen(model: GreadSettings) -> tuple[GreadSettings, str]:
    normalisation = model.normalisation if model.adjacency == "original" else "row"
    choose = partial(
        choose_method, model.system, model.time, normalisation=normalisation,
        undirected=find_normalisation(normalisation).is_symmetric,
    )  # fmt: skip
    choice = choose(stepped=model.adjacency == "live")
    if not model.system.is_single and choice.method != "exact":  # steps that never ask the host: a graph records them
        adaptive, choice = choice, choose(stepped=True)
        choice = replace(choice, reason=f"in place of {adaptive.method} ({adaptive.reason}): {choice.reason}")
    step = None if choice.step is None else model.step or choice.step
    if model.beta_link == AUTO and _needs_sign(model.system, normalisation):
        told = f"{choice.reason}; beta in (0, 1), as no bound of the slope holds for all states"
        return model.resolved(choice.method, step, "sigmoid"), told
    return model.resolved(choice.method, step, model.beta_link), choice.reason


def _needs_sign(system: System, normalisation: str) -> bool:
    """Whether beta, per channel or node, is free in a field that may outgrow the state and is not the authors' own."""
    kind = system.letters.get("beta")
    if kind not in (Kind.CHANNEL, Kind.NODE) or "beta" in system.assumptions.stated:
        return False
    if not system.is_single:
        return not system.coupling.is_linear
    bound = rate_bound(system, normalisation)
    if bound.is_finite and not bound.is_local:
        return False
    alpha = system.coefficients.get("alpha", "scalar")
    return all(system.normal != read_equation(name, alpha, kind.value).normal for name in PUBLISHED)


def resolve_config(config: Config) -> tuple[Config, str]:
    """A configuration with the method of its equation, and why it was chosen; others are as they are."""
    if not isinstance(config.model, GreadSettings):
        return config, ""
    model, reason = resolve_method(config.model)
    return replace(config, model=model), reason


def resolve_trials(trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """The trials with the methods that follow from their equations where these were left open, and the reasons.

    Raises:
        InvalidArgument: For what is no list of trials.
    """
    trials = read_trials(trials)
    share_equations(trial.config.model for trial in trials)
    known: dict[int, tuple[Config, str]] = {}  # trials of many splits share their configurations, and go on to
    for trial in trials:
        if id(trial.config) not in known:
            known[id(trial.config)] = resolve_config(trial.config)
    resolved = [known[id(trial.config)] for trial in trials]
    chosen = [replace(trial, config=config) for trial, (config, _) in zip(trials, resolved, strict=True)]
    return chosen, [reason for _, reason in resolved]

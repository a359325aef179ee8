"""Choices that a model leaves open: the links of its coefficients, and the method that suits its equation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import sympy as sp
import torch
from torch import Tensor

from gread.models.state_layout import StateLayout
from gread.settings.config import Config
from gread.settings.gread_settings import AUTO, GreadSettings, share_equations
from gread.settings.state_region import SAFE, UNIT, StateRegion
from gread.settings.trials import Trial, read_trials
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import R, h, s
from rdgraph.language.assumptions import Assumptions
from rdgraph.language.normal_form import State
from rdgraph.language.reader import PRIME, start_of, usual_of_fields
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import limited
from rdgraph.reals.domain import Domain
from rdgraph.reals.judge import always
from rdgraph.reals.line_pieces import zeros
from rdgraph.reals.regions import defining_conditions
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.systems.system import System
from rdgraph.theory.global_existence import grows_linearly
from rdgraph.theory.invariant_boxes import proved_box
from rdgraph.theory.method_choice import choose_method
from rdgraph.theory.rate_bounds import rate_bound
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds
from rdgraph.theory.several_fields.rectangle_faces import AVERAGING, AVERAGING_OR_ALONE, Collecting, RectangleFaces
from rdgraph.theory.several_fields.rectangles import collecting_of, rectangle
from rdgraph.vocabulary.normalisations import find_normalisation

Interval = tuple[float, float]

#: The name of the training nodes in an equation.
TRUSTED = "M"
#: The links: values in (0, 1), in (-1, 0) for coefficients declared negative, any value, and symmetric matrices.
SIGMOID, NEGATED, FREE, SYMMETRIC = "sigmoid", "negated sigmoid", "free", "symmetric"
#: Links whose parameters are drawn at random; those of the others start at zero.
DRAWN = (FREE, SYMMETRIC)
#: The initial interval of densities, and the last one tried for equations with roots or quotients.
DENSITY, POSITIVE = (0.0, 1.0), (0.25, 1.25)
#: The margin around an interval without poles, in its widths; seconds for one proof, and the most regions to try.
MARGIN, PROOF_SECONDS, MOST_REGIONS = 0.125, 2.0, 12
#: The most coefficients whose ranges are tried at both ends in the search for poles.
MOST_COEFFICIENTS = 4
#: The part of the reason that says that states may reach a pole.
UNPROVED = (
    "no states are proved to keep away from the poles of this equation; a slope that is not finite is cut to [-1, 1] "
    "and passes no gradient"
)
#: Features beyond this size soon overflow single precision in states and losses.
LARGE = 1e4


def link_of(model: GreadSettings, name: str, kind: Kind) -> str:
    """How the parameter of a coefficient becomes its value: sigmoid, negated sigmoid, free or symmetric.

    A sign declared in the equation decides, unless the model has a link for the coefficient; a matrix P is free unless
    it is declared symmetric, which makes it (P + P')/2.

    >>> link_of(GreadSettings(), "alpha", Kind.CHANNEL), link_of(GreadSettings(), "beta", Kind.CHANNEL)
    ('sigmoid', 'free')
    >>> link_of(GreadSettings("u' = -Du*L@u + beta*v; v' = u where beta negative"), "beta", Kind.CHANNEL)
    'negated sigmoid'
    """
    declared = {"alpha": model.alpha_link, "beta": model.beta_link}.get(name, AUTO)
    if declared != AUTO:
        return declared
    if kind is Kind.MATRIX:
        return SYMMETRIC if name in model.system.assumptions.symmetric else FREE
    stated = model.system.assumptions
    if name in stated.stated:
        return {"real": FREE, "negative": NEGATED, "nonpositive": NEGATED}.get(stated.sign(name), SIGMOID)
    is_diffusivity = name == "alpha" or name in usual_of_fields(model.system.fields)
    return SIGMOID if is_diffusivity or kind is Kind.SCALAR else FREE


def linked(parameter: Tensor, link: str) -> Tensor:
    """The values of a coefficient from its parameter, by its link.

    >>> linked(torch.zeros(2), NEGATED)
    tensor([-0.5000, -0.5000])
    """
    if link == FREE:
        return parameter
    if link == SYMMETRIC:
        return (parameter + parameter.mT) / 2
    values = torch.sigmoid(parameter)
    return -values if link == NEGATED else values


def resolve_method(model: GreadSettings) -> tuple[GreadSettings, str]:
    """The model with a method, a step and a region of states, and why they were chosen; "" if all were given.

    `rdgraph.theory.method_choice` decides what the equation allows. Attention makes A row-stochastic and not symmetric;
    attention that follows the state makes a linear equation nonlinear, so that it is stepped. A beta whose link is
    "auto" stays in (0, 1) if the slope has no bound for all states, since its sign may then decide whether H(t) blows
    up. `states` "auto" are those of `safe_region`.

    >>> chosen, reason = resolve_method(GreadSettings(reaction="-alpha*L@H + beta*tanh(H)"))
    >>> chosen.method, reason.partition(";")[0]
    ('rk4', 'the reaction beta*tanh(H) is nonlinear')
    >>> resolve_method(GreadSettings(method="euler", step=0.5))[1]
    ''
    >>> chosen, reason = resolve_method(GreadSettings(reaction="-alpha*L@H + beta*H**2"))
    >>> chosen.beta_link, chosen.states
    ('sigmoid', 'tanh on [-1, 1]')
    """
    return _chosen(model) if model.method == AUTO or model.states == SAFE else (model, "")


@lru_cache(maxsize=256)
def _chosen(model: GreadSettings) -> tuple[GreadSettings, str]:
    normalisation = model.normalisation if model.adjacency == "original" else "row"
    reasons = []
    if model.beta_link == AUTO and _needs_sign(model.system, normalisation):
        model = model.resolved(model.method, model.step, SIGMOID)
        reasons = ["beta in (0, 1), as no bound of the slope holds for all states"]
    region, why = (model.region, "") if model.states not in (AUTO, SAFE) else safe_region(model, normalisation)
    reasons += [why] if why else []
    if model.method != AUTO:
        return model.resolved(model.method, model.step, model.beta_link, region), "; ".join(reasons)
    choose = partial(
        choose_method, model.system, model.time, normalisation=normalisation,
        undirected=find_normalisation(normalisation).is_symmetric,
    )  # fmt: skip
    choice = choose(stepped=model.adjacency == "live" or region.is_saturated)
    # Steps that never synchronise with the host are several times faster, as a CUDA graph.
    if choice.method not in ("exact", "rk4"):
        other, choice = choice, choose(stepped=True)
        choice = replace(choice, reason=f"instead of {other.method} ({other.reason}): {choice.reason}")
    step = None if choice.step is None else model.step or choice.step
    return model.resolved(choice.method, step, model.beta_link, region), "; ".join([choice.reason, *reasons])


def _needs_sign(system: System, normalisation: str) -> bool:
    """Whether beta, per channel or node, has a free sign in a field that may grow faster than the state."""
    if system.letters.get("beta") not in (Kind.CHANNEL, Kind.NODE) or "beta" in system.assumptions.stated:
        return False
    if not system.is_single:
        return not system.coupling.is_linear
    bound = rate_bound(system, normalisation)
    return not bound.is_finite or bound.is_local


# ---------------------------------------------------------------------- safe states
def safe_region(model: GreadSettings, normalisation: str) -> tuple[StateRegion, str]:
    """Initial states for which no run overflows, and why; free if all initial states are safe.

    This is the case for equations that are smooth everywhere and proved to grow at most linearly. Others start inside a
    box that is proved to be invariant for all coefficients that the links allow; without such a box the slope is also
    bounded by tanh. Equations with poles, or roots of zero, start in an interval that is proved to avoid them, and
    evaluate their slopes there; if none is found, `UNPROVED` is part of the reason.

    >>> [str(safe_region(GreadSettings(name), "row")[0]) for name in ("BS", "Lotka-Volterra", "Gray-Scott")]
    ['free', '[0, 1] x [0, 1]', 'tanh on [0, 1] x [0, 1]']
    >>> str(safe_region(GreadSettings("-alpha*L@H + beta/(1 - H)"), "row")[0])
    'tanh within [-1, 0.75]'
    """
    system, poles = model.system, _Poles.of(model, normalisation)
    bound = rate_bound(system, normalisation)
    is_linear = grows_linearly(system) if system.is_single else bound.is_finite and not bound.is_local
    if is_linear and not poles.exist:
        return StateRegion(), ""
    advice = "states='free' removes this restriction"
    box = _kept_intervals(system, normalisation) if _keeps_assumptions(model) else None
    encoded = StateLayout.of(model.resolved(model.method, model.step, model.beta_link, StateRegion())).encoded
    if box is not None and set(encoded) == set(box) and (not poles.exist or poles.avoided(box)):
        region = StateRegion(tuple(box[name] for name in encoded))
        return region, f"states start in {region}, inside an invariant box; {advice}"
    nonnegative = not system.is_single and rectangle(system, normalisation).nonnegative.value is True
    usual = {name: DENSITY if nonnegative and not name.endswith(PRIME) else UNIT for name in encoded}
    apart, is_proved = poles.apart(usual) if poles.exist else (usual, True)
    start = StateRegion(tuple(apart.values()), is_saturated=True, is_clamped=poles.exist)
    inside = replace(start, is_saturated=False)
    if not poles.exist:
        why = f"states start in {inside} and dH/dt = tanh(f(H)), since no invariant box is known; {advice}"
        return start, why
    why = f"states start in {inside} and dH/dt = tanh(f(H)), H clamped to it, since the equation has poles; {advice}"
    return start, why if is_proved else f"{UNPROVED}; {why}"


@dataclass(frozen=True)
class _Poles:
    """The states at which an equation is undefined or has an infinite slope, for coefficients within their links.

    `conditions` hold wherever the equation is smooth; `faces` proves them for all values of the operators. There are no
    conditions if the equation is smooth for all states.
    """

    faces: RectangleFaces
    conditions: tuple[sp.Basic, ...]

    @classmethod
    def of(cls, model: GreadSettings, normalisation: str) -> _Poles:
        speeds = NodeSpeeds.of(_as_linked(model), normalisation, is_open=True)
        try:
            collecting = collecting_of(normalisation)
        except NotApplicable:
            collecting = Collecting(0, None)
            speeds = replace(speeds, calls=tuple(replace(call, word=("",)) for call in speeds.calls))
        if collecting is AVERAGING and not model.self_loops:
            collecting = AVERAGING_OR_ALONE
        seen = {call.letter: call.inner for call in speeds.calls}
        parts = [*speeds.speeds.values(), *seen.values()]
        definedness = (c for part in parts for c in defining_conditions(part, smooth=True))
        conditions = [c for c in definedness if c.has(State) or c.free_symbols & set(seen)]
        poles = cls(RectangleFaces(speeds, collecting), tuple(dict.fromkeys(conditions)))
        return replace(poles, conditions=()) if conditions and poles.avoided({}) else poles

    @property
    def exist(self) -> bool:
        return bool(self.conditions)

    def avoided(self, intervals: Mapping[str, Interval]) -> bool:
        """Whether the equation is proved smooth in the intervals and a margin around them, for any other fields."""
        wide = {
            name: (low - MARGIN * (high - low), high + MARGIN * (high - low)) for name, (low, high) in intervals.items()
        }
        bounds = {name: tuple(map(sp.nsimplify, wide.get(name, (-sp.oo, sp.oo)))) for name in self.faces.speeds.speeds}
        try:
            return limited(PROOF_SECONDS, self.faces.is_lipschitz, bounds)
        except Undecided:
            return False

    def apart(self, usual: Mapping[str, Interval]) -> tuple[dict[str, Interval], bool]:
        """The first intervals that are proved to avoid all poles: the usual ones, then the gaps between poles.

        Without a proof, the widest gaps and False.
        """
        gaps = {name: self._gaps(name) for name in usual}
        choices = {name: list(dict.fromkeys([pair, *gaps[name], POSITIVE])) for name, pair in usual.items()}
        ranks = sorted(itertools.product(*(range(len(c)) for c in choices.values())), key=sum)
        for rank in ranks[:MOST_REGIONS]:
            intervals = {name: pairs[k] for (name, pairs), k in zip(choices.items(), rank, strict=True)}
            if self.avoided(intervals):
                return intervals, True
        return {name: next(iter(gaps[name]), pair) for name, pair in usual.items()}, False

    def _gaps(self, name: str) -> list[Interval]:
        """Intervals between the poles of a field, the widest first, for equal states at all nodes."""
        points: set[float] = set()
        for condition in self.conditions:
            for _ in range(2):  # operators act on equal nodes, also inside each other
                condition = condition.xreplace({call.letter: call.inner for call in self.faces.speeds.calls})
            if isinstance(condition, sp.Rel) and condition.has(State(name), State(start_of(name))):
                points |= _zeros_at_ends(condition.lhs - condition.rhs)
        ends = [-math.inf, *sorted(points), math.inf] if points else []
        gaps = [_inside_gap(*pair) for pair in itertools.pairwise(ends)]
        return sorted(gaps, key=lambda pair: (pair[0] - pair[1], -pair[0]))


def _zeros_at_ends(formula: sp.Expr) -> set[float]:
    """Zeros in a state shared by all fields, at every corner of the coefficient ranges."""
    formula = formula.xreplace({x: h for x in formula.free_symbols if isinstance(x, State)})
    coefficients = sorted(formula.free_symbols - {h}, key=str)[:MOST_COEFFICIENTS]
    ends = [(0, 1) if x.is_nonnegative else (-1, 0) if x.is_nonpositive else (-1, 1) for x in coefficients]
    points: set[float] = set()
    for corner in itertools.product(*ends):
        with suppress(Undecided, NotImplementedError, TypeError, sp.PolynomialError):
            at_corner = formula.xreplace(dict(zip(coefficients, map(sp.Integer, corner), strict=True)))
            points |= {float(z) for z in limited(PROOF_SECONDS, zeros, at_corner, h) if z.is_number and z.is_real}
    return points


def _inside_gap(low: float, high: float) -> Interval:
    """The part of a gap nearest to [-1, 1], at least 1/4 from its ends, or a quarter of its length if it is short."""
    margin = min(0.25, (high - low) / 4)
    low, high = low + margin, high - margin
    start = max(low, min(UNIT[0], high - 1))
    return round(start, 4), round(min(high, max(UNIT[1], start + 1)), 4)


def _as_linked(model: GreadSettings) -> System:
    """The equation with the coefficient ranges that the links ensure as its only assumptions."""
    texts = []
    for name, kind in valued_letters(model.system).items():
        if kind is not Kind.MATRIX and name != TRUSTED:
            ranges = {SIGMOID: ("positive", "<= 1"), NEGATED: ("negative", ">= -1")}
            texts += [f"{name} {word}" for word in ranges.get(link_of(model, name, kind), ("real",))]
    return replace(model.system, assumptions=Assumptions.read(texts, model.system.letters))


def _keeps_assumptions(model: GreadSettings) -> bool:
    """Whether coefficients have the signs and relations assumed by proofs, for all values of their parameters."""
    system = model.system
    for name, kind in valued_letters(system).items():
        if kind is not Kind.MATRIX and link_of(model, name, kind) == FREE and system.assumptions.sign(name) != "real":
            return False
    symbols = {x for condition in system.domain.conditions for x in condition.free_symbols}
    inside = [sp.Lt(abs(x), 1) for x in symbols]
    return all(always(condition, *inside) for condition in system.domain.conditions)


def _kept_intervals(system: System, normalisation: str) -> dict[str, Interval] | None:
    """[-1, 1] or [0, 1] for every field, inside an invariant box; None if no such box is proved."""
    if not find_normalisation(normalisation).averages:
        return None
    if system.is_single:
        box = proved_box(system, normalisation).allowing_isolated()
        boxes = [(box.lower, box.upper), *box.others] if box.exists and not box.start else []
        choices: list[dict[str, Any]] = [{"H": pair} for pair in boxes]
    else:
        box_of_fields = rectangle(system, normalisation)
        signed = {sp.Symbol(name): system.assumptions.symbol(name) for name in system.coefficients}
        signed |= {sp.Symbol("s"): s, sp.Symbol("R"): R}
        bounds = {k: [end.xreplace(signed) for end in pair] for k, pair in (box_of_fields.bounds or {}).items()}
        choices = [bounds] if box_of_fields.is_bounded and not box_of_fields.assumes else []
    domain = system.domain.where(s >= 1)
    for intervals in ((UNIT, DENSITY), (DENSITY,)):
        for choice in choices:
            inside = {name: _inside(pair, intervals, domain) for name, pair in choice.items()}
            if all(inside.values()):
                return {name: pair for name, pair in inside.items() if pair is not None}
    return None


def _inside(box: tuple[Any, Any], intervals: Sequence[Interval], domain: Domain) -> Interval | None:
    """The first interval that is proved to lie in a box, where any size R > 0 may be used."""
    low, high = (sp.sympify(end).subs(R, 1) for end in box)
    for pair in intervals:
        if domain.proves(sp.And(sp.Le(low, int(pair[0])), sp.Ge(high, int(pair[1])))):
            return pair
    return None


def pole_warning(reason: str) -> str:
    """The warning in the reason of `resolve_method` that states may reach a pole; "" if there is none.

    >>> pole_warning(resolve_method(GreadSettings("-alpha*L@H + beta/(H0 - H)"))[1]).partition(";")[0]
    'no states are proved to keep away from the poles of this equation'
    """
    remedy = "give an interval without poles, as in states='tanh within [0.5, 1]', or restrict signs in the equation"
    return f"{UNPROVED}; {remedy}" if UNPROVED in reason else ""


def divergence_remedy(config: Config, x: Any) -> str:
    """A remedy for a training that diverged at once on features x: their scale, the states, or the time.

    >>> divergence_remedy(Config().updated({"reaction": "AC", "method": "euler", "step": 1.0}), torch.ones(2, 2))
    'states of this equation can grow without bound: set states=safe'
    """
    largest = float(abs(x).max())
    if largest > LARGE:
        return f"the features reach {largest:.3g}: standardise their columns, as with standardise=True of NodeData"
    model = config.model
    if not isinstance(model, GreadSettings):
        return "lower learning_rate"
    if model.region.is_free and not resolve_method(replace(model, states=SAFE))[0].region.is_free:
        return "states of this equation can grow without bound: set states=safe"
    return "lower time or learning_rate"


def resolve_config(config: Config) -> tuple[Config, str]:
    """The configuration with a method for its equation, and why it was chosen; others are unchanged."""
    if not isinstance(config.model, GreadSettings):
        return config, ""
    model, reason = resolve_method(config.model)
    return replace(config, model=model), reason


def resolve_trials(trials: Sequence[Trial]) -> tuple[list[Trial], list[str]]:
    """The trials with methods for their equations in place of "auto", and the reasons.

    Raises:
        InvalidArgument: For anything but a list of trials.
    """
    trials = read_trials(trials)
    share_equations(trial.config.model for trial in trials)
    known: dict[int, tuple[Config, str]] = {}  # trials of many splits share their configurations
    for trial in trials:
        if id(trial.config) not in known:
            known[id(trial.config)] = resolve_config(trial.config)
    resolved = [known[id(trial.config)] for trial in trials]
    chosen = [replace(trial, config=config) for trial, (config, _) in zip(trials, resolved, strict=True)]
    return chosen, [reason for _, reason in resolved]

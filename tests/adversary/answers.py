"""The only file that knows how the tool is asked: questions in, plain records of texts out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import rdgraph as rd
from rdgraph.check_certificate import Rejected, check
from rdgraph.language.answer_symbols import public
from rdgraph.reals.certificates import certified
from rdgraph.reals.judge import Record, recorded
from tests.adversary.outcome import Question


class Undecided(Exception):
    """The tool said that it does not know."""


class Refused(Exception):
    """The tool said, as documented, that the question does not apply."""


class Uncertified(Exception):
    """An obligation behind an answer has a certificate that the stand-alone checker rejects."""


@dataclass(frozen=True)
class Bound:
    """A constant; value None with a note means that it does not exist."""

    value: str | None
    exact: bool
    note: str


@dataclass(frozen=True)
class Box:
    """An invariant interval, or none with a note.

    `isolated` is the interval for graphs with isolated nodes where the first one presumes that there are none; `start`
    the range of H0 where it is narrower than the box; `where` the condition on the coefficients; `regular` an interval
    for regular graphs with edges, for H0 in `regular_start` where that is narrower. `left` claims that every box is
    left, for the coefficients `at` if there are any.
    """

    lower: str | None
    upper: str | None
    note: str
    others: tuple[tuple[str, str], ...] = ()
    assumes: str = ""
    isolated: tuple[str, str] | None = None
    start: tuple[str, str] | None = None
    where: str = "True"
    regular: tuple[str, str] | None = None
    left: bool = False
    at: tuple[tuple[str, str], ...] = ()
    regular_start: tuple[str, str] | None = None


@dataclass(frozen=True)
class Step:
    """A step limit; keeps is "stability", "box", "linearised", "slopes", "equal slopes", or "distances" at a `rate`."""

    value: str
    keeps: str
    means: str
    box: tuple[str, str] | None = None
    assumes: str = ""
    directed: str | None = None
    sharp: bool = False
    rate: str | None = None

    @property
    def one_way(self) -> bool:
        """Whether directed graphs are meant: not where the answer speaks of undirected ones or real spectra."""
        return not re.search("undirected|real spectrum|real eigenvalues", self.assumes)


@dataclass(frozen=True)
class BlowUp:
    """From which h0 and when; without a condition far enough out, where the coefficients satisfy `where`."""

    way: int
    condition: str | None
    time: str | None
    where: str = "True"
    example: bool = False


@dataclass(frozen=True)
class Existence:
    status: str
    reason: str
    blow_ups: tuple[BlowUp, ...] = ()


@dataclass(frozen=True)
class Equivalence:
    """proved, holds if, or refuted; a witness as the edges and the values of the letters."""

    status: str
    conditions: tuple[tuple[str, ...], ...] = ()
    nodes: int = 0
    edges: tuple[tuple[int, int], ...] = ()
    letters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Identifiability:
    """Formulas that the field determines, letters among them (everywhere, or nearby only), and the rank in all."""

    combinations: tuple[str, ...]
    single: tuple[str, ...]
    hidden: tuple[str, ...]
    local: tuple[str, ...] = ()
    rank: int | None = None


@dataclass(frozen=True)
class Conservation:
    """Weights per normalisation as formulas in the degree d; empty: no weighted mean is constant."""

    weights: tuple[tuple[str, str], ...]
    assumes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class State:
    """A constant state between two formulas, where conditions hold; what becomes of small deviations, in words.

    `free`: every state, where the conditions hold, which may be about the state too.
    """

    lower: str
    upper: str
    conditions: tuple[str, ...] = ()
    stability: str = ""
    free: bool = False


@dataclass(frozen=True)
class States:
    """Constant steady states; `is_complete` claims that there are no others between -100 and 100."""

    states: tuple[State, ...]
    is_complete: bool


@dataclass(frozen=True)
class Increase:
    """A state on the cycle of `nodes` nodes at which the energy increases, with the rate."""

    nodes: int
    coefficients: tuple[tuple[str, float], ...]
    state: tuple[float, ...]
    initial: tuple[float, ...] | None
    rate: float


@dataclass(frozen=True)
class Energy:
    """The law by frequencies, what becomes of the energy, a witness where it increases, and whether f is a gradient.

    `threshold` is what has to be <= 0 where that depends on the coefficients.
    """

    mode_rate: str | None
    source_rate: str | None
    decays: str
    threshold: str | None = None
    witness: Increase | None = None
    is_gradient: bool = False


@dataclass(frozen=True)
class Formula:
    text: str


@dataclass(frozen=True)
class Classes:
    """(condition, kind, place of the interior extremum or None)."""

    classes: tuple[tuple[str, str, str | None], ...]


@dataclass(frozen=True)
class Flow:
    """(condition, formula) of h(t) from h0."""

    branches: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Finding:
    """A line of a preflight; with the box of H0, the limit of the step and what the limit keeps where it has them."""

    topic: str
    status: str
    text: str
    box: tuple[str, str] | None = None
    limit: str | None = None
    keeps: str = ""


@dataclass(frozen=True)
class Preflight:
    status: str
    verdict: str
    findings: tuple[Finding, ...]

    def has(self, topic: str) -> bool:
        return any(line.topic == topic for line in self.findings)


@dataclass(frozen=True)
class Both:
    """The answers about one system in two forms, "undecided" or "refused" where there is none."""

    first: Any
    second: Any


def ask(text: str, question: Question) -> Any:
    """The tool's answer to a question about a system given as text.

    Raises:
        Undecided: the tool does not know.
        Refused: the question does not apply, with the tool's documented error.
    """
    try:
        return _DOORS[question.name](text, **question.arguments)
    except rd.errors.Undecided as reason:
        raise Undecided(str(reason)) from None
    except (rd.errors.NotApplicable, rd.errors.AssumptionError, rd.errors.LanguageError) as reason:
        raise Refused(str(reason)) from None


def ask_with_record(text: str, question: Question) -> tuple[Any, Record]:
    """The answer as from `ask`, and every obligation it rests on."""
    with recorded() as asked:
        return ask(text, question), asked


def checked_without_solver(asked: Record) -> tuple[int, int]:
    """How many obligations the stand-alone checker accepts, and how many have no proof; raises Uncertified."""
    try:
        return check(certified({}, asked))
    except Rejected as reason:
        raise Uncertified(str(reason)) from None


def _both(text: str, other: str, name: str, arguments: dict[str, Any]) -> Both:
    if rd.equivalent(text, other).outcome != "proved":
        raise Refused("the two forms are not proved equal")
    return Both(*(_answer(form, name, arguments) for form in (text, other)))


def _answer(text: str, name: str, arguments: dict[str, Any]) -> Any:
    try:
        return ask(text, Question("", name, arguments))
    except Undecided:
        return "undecided"
    except Refused:
        return "refused"


def _bound(question: Callable[..., Any]) -> Callable[..., Bound]:
    def asked(text: str, normalisation: str) -> Bound:
        found = question(rd.parse(text), normalisation)
        if found.value is None and found.reason.startswith("undecided"):
            raise Undecided(found.reason)
        return Bound(_text(found.value), found.is_sharp, found.reason)

    return asked


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _box(text: str, normalisation: str) -> Box:
    found = rd.invariant_box(rd.parse(text), normalisation)
    if not found.is_decided:
        raise Undecided(found.reason)
    others = tuple((str(a), str(b)) for a, b in found.others)
    isolated = _pair(found.with_isolated) if found.assumes else None
    at = tuple((name, str(value)) for name, value in found.at)
    return Box(
        _text(found.lower), _text(found.upper), found.reason, others, found.assumes, isolated, _pair(found.start),
        str(found.where), _pair(found.regular), found.is_left, at, _pair(found.regular_start),
    )  # fmt: skip


def _pair(interval: Any) -> tuple[str, str] | None:
    return None if interval is None else (str(interval[0]), str(interval[1]))


def _step(text: str, method: str, normalisation: str) -> Step:
    system = rd.parse(text)
    found = rd.step_limit(system, method, normalisation)
    if found.value is None:
        raise Undecided(found.reason)
    box = rd.invariant_box(system, normalisation) if found.keeps == "box" else None
    faces = (str(box.lower), str(box.upper)) if box is not None else None
    directed = _text(found.directed)
    rate = _text(found.rate)
    return Step(str(found.value), found.keeps, found.reason, faces, found.assumes, directed, found.is_sharp, rate)


def _existence(text: str) -> Existence:
    found = rd.existence(rd.parse(text))
    if found.status == "undecided":
        raise Undecided(found.reason)
    blow_ups = tuple(BlowUp(b.way, _text(b.condition), _text(b.time), str(b.where), b.example) for b in found.blow_ups)
    return Existence(found.outcome, found.reason, blow_ups)


def _equivalent(text: str, other: str, given: tuple[str, ...] = (), rescale_time: bool = False) -> Equivalence:
    found = rd.equivalent(text, other, given, rescale_time=rescale_time)
    if found.status == "undecided":
        raise Undecided(found.reason)
    if found.witness is None:
        return Equivalence(found.outcome, found.conditions)
    witness = found.witness
    return Equivalence(found.outcome, found.conditions, witness.nodes, witness.edges, witness.letters)


def _identify(text: str) -> Identifiability:
    found = rd.theory.identify(rd.parse(text))
    if found.status == "undecided":
        raise Undecided(found.reason)
    return Identifiability(tuple(map(str, found.combinations)), found.single, found.hidden, found.local, found.rank)


def _conserved(text: str) -> Conservation:
    found = rd.theory.conserved(rd.parse(text))
    return Conservation(tuple(sorted(found.weights.items())), tuple(sorted(found.assumes.items())))


def _energy(text: str) -> Energy:
    found = rd.theory.energy_law(rd.parse(text))
    is_gradient = found.gradient.energy is not None
    if found.mode_rate is None and found.decays.startswith("undecided") and not is_gradient:
        raise Refused(found.decays)
    decays, (w, threshold) = found.decays, (found.witness, _text(found.threshold))
    rates = _text(found.mode_rate), _text(found.source_rate)
    if w is None:
        return Energy(*rates, decays, threshold, None, is_gradient)
    values = tuple((name, float(value)) for name, value in w.coefficients.items())
    initial = None if w.initial is None else tuple(w.initial)
    increase = Increase(w.nodes, values, tuple(w.state), initial, w.rate)
    return Energy(*rates, decays, threshold, increase, is_gradient)


def _states(text: str, values: dict[str, float] | None) -> States:
    try:
        found = rd.steady_states(rd.parse(text), values)
    except rd.errors.InvalidArgument as reason:  # rounded numbers need not meet the assumptions
        raise Refused(str(reason)) from None
    if not found.is_complete and not found.states:
        raise Undecided(found.reason)
    return States(tuple(_state(state) for state in found), found.is_complete)


def _state(state: Any) -> State:
    (value,) = state.values.values()
    ends = next(iter(state.enclosures.values()), (value, value))
    conditions = tuple(str(public(c)) for c in state.conditions)
    return State(str(ends[0]), str(ends[1]), conditions, state.stability, bool(state.free))


def _response(text: str, T: float, method: str, step: float | None = None) -> Formula:
    return Formula(str(rd.theory.response(rd.parse(text), T, method, step)))


def _classify(text: str) -> Classes:
    found = rd.classify(rd.parse(text))
    return Classes(tuple((str(c.condition), c.kind, _text(c.at)) for c in found))


def _flow(text: str) -> Flow:
    return Flow(tuple((str(c), str(e)) for c, e in rd.theory.reaction_flow(rd.parse(text)).branches))


def _preflight(text: str, graph: Any = None, **settings: Any) -> Preflight:
    found = rd.preflight(text, graph=graph, **settings)
    if found.outcome == "undecided":
        raise Undecided(found.verdict)
    lines = (Finding(f.topic, f.outcome, f.text, _pair(f.box), _text(f.limit), f.keeps) for f in found.findings)
    return Preflight(found.outcome, found.verdict, tuple(lines))


def _formula(question: Callable[..., Any]) -> Callable[[str], Formula]:
    return lambda text: Formula(str(question(rd.parse(text))))


_DOORS: dict[str, Callable[..., Any]] = {
    "lipschitz_global": _bound(rd.lipschitz_global),
    "lipschitz_local": _bound(rd.theory.lipschitz_local),
    "one_sided": _bound(rd.theory.one_sided),
    "invariant_box": _box,
    "step_limit": _step,
    "existence": _existence,
    "equivalent": _equivalent,
    "identify": _identify,
    "conserved": _conserved,
    "energy_law": _energy,
    "response": _response,
    "steady_states": _states,
    "symbol": _formula(rd.theory.symbol),
    "classify": _classify,
    "fastest_frequency": _formula(rd.theory.fastest_frequency),
    "growth_rate": _formula(rd.theory.growth_rate),
    "reaction_flow": _flow,
    "preflight": _preflight,
    "both": _both,
}


# ---------------------------------------------------------------------- several fields
def ask_fields(text: str, question: str, *given: Any) -> Any:
    """An answer about several fields, as the tool gives it; `Undecided` where it says that it does not know."""
    try:
        match question:
            case "pages":
                rd.preflight(text, normalisation=given[0], T=2)
                return rd.analyse(text, [given[0]]).to_dict()
            case "conserved":
                return rd.theory.conserved(text)
            case "existence":
                return rd.existence(text)
        return getattr(rd if question in rd.__all__ else rd.theory, question)(text, *given)
    except rd.errors.Undecided as reason:
        raise Undecided(str(reason)) from None

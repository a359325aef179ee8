"""Everything the package can say about one system, as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sympy as sp

from rdgraph.answers import Answer, AnswersByName, Status, refused, undecided
from rdgraph.errors import NotApplicable, Undecided, UnknownName
from rdgraph.reals.budget import ANSWER_SECONDS, PAGE_SECONDS, limited, page
from rdgraph.reals.condition_words import condition_in_words, in_words
from rdgraph.run.engines.engine import silent
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.conservation import ConservedSums, conserved, energy_law
from rdgraph.theory.filters import classify, fastest_frequency, response, symbol
from rdgraph.theory.global_existence import Existence, existence
from rdgraph.theory.identifiability.question import identify
from rdgraph.theory.invariant_boxes import invariant_box, single_box
from rdgraph.theory.lipschitz import Constant, lipschitz_global, lipschitz_local, one_sided
from rdgraph.theory.method_choice import MethodChoice, choose_method
from rdgraph.theory.several_fields.rectangles import Rectangle
from rdgraph.theory.step_limits import step_limit
from rdgraph.vocabulary.normalisations import find_normalisation
from rdgraph.wording import html_table

# ---------------------------------------------------------------------- answer tables
# Answers by normalisation, and the notes that go with them; every expression inside an answer as text.

Found = TypeVar("Found")
One = TypeVar("One", bound=Answer)


@dataclass
class Collected:
    """Answers by key as they come, and notes on what is missing or conditional."""

    results: dict[str, Answer] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def as_text(answer: sp.Basic | Constant) -> str:
    """A formula as sympy reads it."""
    return str(answer.value if isinstance(answer, Constant) else answer)


def as_words(answer: sp.Basic | Constant) -> str:
    """A formula as a person says it; a constant that is not claimed to be attained is "at most" its bound.

    >>> as_words(Constant(sp.Float("1.1997") * sp.Symbol("b"), False, "2-norm"))
    'at most 1.1997*b'
    """
    if not isinstance(answer, Constant):
        return in_words(answer)
    words = in_words(answer.value, 1)
    return words if answer.is_sharp else f"at most {words}"


def rendered(value: Any, show: Callable[[sp.Basic | Constant], str]) -> Any:
    """Every expression inside an answer as text."""
    match value:
        case Mapping():
            return {k: rendered(v, show) for k, v in value.items()}
        case list() | tuple():
            return [rendered(v, show) for v in value]
        case sp.Basic() | Constant():
            return show(value)
    return value


def answered(questions: Mapping[str, Callable[[], Any]], tell: Callable[[str], object]) -> dict[str, Any]:
    """Answer every question by key, one after the other; `tell` is called with the words of each before it is asked.

    >>> answered({"step_limit": lambda: 2}, print)
    step limit
    {'step_limit': 2}
    """
    found = {}
    for key, question in questions.items():
        tell(key.replace("_", " "))
        found[key] = question()
    return found


def attempted(key: str, question: Callable[[], Found], into: Collected) -> Found | None:
    """What a question gives, or None with the reason among the notes; its answer is among the results."""
    try:
        found = question()
    except (NotApplicable, Undecided) as reason:
        into.notes[key], into.results[key] = str(reason), _without(reason)
        return None
    into.results[key] = found if isinstance(found, Answer) else Answer(found, Status.PROVED)
    return found


def _without(problem: NotApplicable | Undecided) -> Answer:
    return undecided(problem) if isinstance(problem, Undecided) else refused(problem)


def remarks(texts: Mapping[str, str]) -> str:
    """Notes per normalisation in one line, written once where they agree."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{n}: {text}" for n, text in texts.items() if text)


def constants(
    key: str, question: Callable[[System, str], Constant], system: System, kinds: Sequence[str], into: Collected
) -> dict[str, Constant | None] | None:
    """Constants by normalisation, None where there is none of them."""
    found = {n: question(system, n) for n in kinds}
    into.notes[key] = remarks({n: c.remark for n, c in found.items()})
    into.results[key] = AnswersByName(found)
    if all(c.value is None for c in found.values()):
        return None
    return {n: None if c.value is None else c for n, c in found.items()}


def where_known(
    key: str, kinds: Sequence[str], question: Callable[[str], One], into: Collected
) -> tuple[dict[str, One], dict[str, str]]:
    """Answers by normalisation, and why there is none for the others; all of them are among the results."""
    found: dict[str, One] = {}
    parts: dict[str, Answer] = {}
    reasons: dict[str, str] = {}
    for name in kinds:
        try:
            parts[name] = found[name] = question(name)
        except (NotApplicable, Undecided) as reason:
            reasons[name], parts[name] = str(reason), _without(reason)
    into.results[key] = AnswersByName(parts)
    return found, reasons


def with_assumption(note: str, assumes: str) -> str:
    return f"{note}; assumes: {assumes}".removeprefix("; ") if assumes else note


def steps(
    key: str, method: str, system: System, kinds: Sequence[str], into: Collected
) -> dict[str, sp.Expr | None] | None:
    """Step limits of a method by normalisation."""
    found, reasons = where_known(key, kinds, lambda n: step_limit(system, method, n), into)
    reasons |= {n: with_assumption(limit.remark, limit.assumes) for n, limit in found.items()}
    into.notes[key] = remarks({n: reasons[n] for n in kinds})
    if all(limit.value is None for limit in found.values()):
        return None
    return {n: found[n].value if n in found else None for n in kinds}


# ---------------------------------------------------------------------- questions
# What a field and several fields are asked in different words.


def existence_note(lives: Existence) -> str:
    """The reason of an answer, from which starts it holds, and blow-ups."""
    starts = [f"from starts with {lives.starts}"] if lives.starts else []
    return "; ".join([lives.reason, *starts, *map(str, lives.blow_ups)])


def _rectangles(system: System, kinds: Sequence[str], into: Collected) -> dict[str, Any]:
    """What several fields stay in, and whether they stay non-negative, by normalisation."""
    found = {n: box for n in kinds if isinstance(box := invariant_box(system, n), Rectangle)}
    into.notes["invariant_box"] = remarks({n: with_assumption(b.remark, b.assumes) for n, b in found.items()})
    into.notes["nonnegative"] = remarks({n: b.nonnegative.reason for n, b in found.items()})
    into.results["invariant_box"] = AnswersByName(found)
    into.results["nonnegative"] = AnswersByName({n: b.nonnegative for n, b in found.items()})
    return {
        "invariant_box": {n: dict(b.bounds) if b.exists and b.bounds else None for n, b in found.items()},
        "nonnegative": {n: b.nonnegative.outcome for n, b in found.items()},
    }


def _boxes(system: System, kinds: Sequence[str], into: Collected) -> dict[str, Any]:
    """The box of one field by normalisation; None where there is none."""
    found, reasons = where_known("invariant_box", kinds, lambda n: single_box(system, n), into)
    reasons |= {n: with_assumption(b.remark, b.assumes) for n, b in found.items()}
    into.notes["invariant_box"] = remarks({n: reasons[n] for n in kinds})
    ends = {n: [found[n].lower, found[n].upper] if n in found and found[n].exists else None for n in kinds}
    return {"invariant_box": ends if any(ends.values()) else None}


def _conserved(system: System, into: Collected) -> dict[str, str] | list[dict[str, Any]] | None:
    """The weights of the conserved mean, or of every sum of several fields, by normalisation; None without any."""
    try:
        found = conserved(system)
    except Undecided as problem:
        into.notes["conserved"], into.results["conserved"] = f"undecided: {problem}", undecided(problem)
        return None
    into.results["conserved"] = found
    if isinstance(found, ConservedSums):
        into.notes["conserved"] = "; ".join([*map(str, found.sums), *([found.reason] if found.reason else [])])
        sums = [{"sum": one.text, "weights": dict(one.weights), "assumes": dict(one.assumes)} for one in found.sums]
        return sums or None
    if not found.exists:
        into.notes["conserved"] = f"no weighted mean is constant: its rate is the mean of {found.rate}"
        return None
    into.notes["conserved"] = "sum_i w_i H_i is constant, w in terms of the degree d; " + "; ".join(
        f"{n}: {assumed}" for n, assumed in found.assumes.items()
    )
    return found.weights


def _patterns(system: System, into: Collected) -> dict[str, Any]:
    """Homogeneous steady states, and the conditions under which transport makes one of them unstable."""
    from rdgraph.theory.patterns.steady_states import steady_states  # these load numpy, which one field does not need
    from rdgraph.theory.patterns.turing_analysis import turing

    notes = into.notes
    states = attempted("steady_states", lambda: steady_states(system), into)
    found = attempted("turing", lambda: turing(system), into)
    if states is not None:
        proof = "complete" if states.is_complete else "not proved to be complete"
        noise = "white noise is left out; " if system.is_noisy else ""
        notes["steady_states"] = f"{noise}{proof}: {states.reason}; assumes: {states.assumes}"
    linear = {}
    if found is not None and not system.coupling.is_linear:
        linear = {"symbol": found.to_dict()["symbol"]}
        notes["symbol"] = f"of the linearisation at {found.state or 'every steady state'}"
    if found is not None:
        notes["turing"] = f"for lam in (0, {found.to}]; assumes: {found.assumes}"
    return linear | {
        "steady_states": str(Status.UNDECIDED) if states is None else states.to_dict(),
        "turing": str(Status.UNDECIDED) if found is None else found.to_dict(),
    }


def suggested_method(system: System, normalisation: str) -> MethodChoice:
    """The method that fits the system; where none follows from the equation in time, the choice says so."""
    try:
        return limited(ANSWER_SECONDS, choose_method, system, normalisation=normalisation)
    except (NotApplicable, Undecided) as problem:
        return MethodChoice(str(Status.UNDECIDED), None, str(problem))


# ---------------------------------------------------------------------- summary
#: What is asked about unless others are named.
NORMALISATIONS = ("symmetric", "row")


@dataclass(frozen=True, eq=False, repr=False)
class Analysis(Mapping[str, Answer]):
    """The answers to all questions by key: `analysis["existence"]`, `analysis["lipschitz_global"]["row"]`.

    `answers` and `words` are the same as strings for sympy and in words, `notes` what is missing or conditional.
    """

    system: System
    answers: dict[str, Any]
    words: dict[str, Any]
    notes: dict[str, str]
    filter_classes: tuple[str, ...]
    fastest: str | None
    blow_ups: tuple[str, ...]
    energy: str
    gradient: str
    existence_reason: str
    method: MethodChoice
    results: dict[str, Answer] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Answer:
        if key not in self.results:
            raise UnknownName("answer of the analysis", key, self.results)
        return self.results[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __str__(self) -> str:
        return "\n".join([repr(self.system), *(f"{key}: {answer}" for key, answer in self.results.items())])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [(key, self.words[key], self.notes.get(key, "")) for key in self.answers if key != "text"]
        rows += [("method", self.method.method, self.method.reason), ("energy law", self.energy, "")]
        rows.append(("gradient flow", self.gradient, ""))
        return html_table(repr(self.system), rows)

    def to_dict(self) -> dict[str, Any]:
        """One flat object: strings sympy can read, None where a question does not apply, explained under `notes`.

        `engines` says by key who decided an answer, where it rests on questions to a solver.
        """
        engines = {key: answer.engines for key, answer in self.results.items() if answer.engines}
        return {**self.answers, "notes": dict(self.notes), "engines": engines}


def analyse(
    system: System | str,
    normalisations: Sequence[str] = NORMALISATIONS,
    *,
    tell: Callable[[str], object] = silent,
) -> Analysis:
    """Answer every question about a system, all together within forty seconds of computing.

    Args:
        system: the system, a name of the catalogue or a line of text.
        normalisations: for which bounds, boxes and step limits are asked.
        tell: called with the name of each question before it is worked on.

    Returns:
        The answers by key, with notes on what is missing or conditional, and the method that fits the system. What
        does not apply is an answer too, with the status refused.

    Raises:
        LanguageError: the text is no equation.
        UnknownName: there is no such normalisation.
        NotApplicable: the equation is too large for exact algebra.
        Undecided: its normal form takes too long.

    >>> analysis = analyse("FB")
    >>> print(analysis["identifiable"])
    alpha - beta is identifiable (proved)
    >>> print(analyse("BS")["lipschitz_global"]["row"])
    2*alpha + 2*beta in the inf-norm (proved)
    """
    system = parse(system)
    kinds = tuple(find_normalisation(name).name for name in normalisations)
    return page(PAGE_SECONDS, _answers, system, kinds, tell)


def _answers(system: System, kinds: Sequence[str], tell: Callable[[str], object]) -> Analysis:
    """The analysis of one equation dH/dt = f(H), of several fields, or of one beyond that."""
    into, one = Collected(), system.is_single
    notes = into.notes
    tell("normal form")
    limited(ANSWER_SECONDS, getattr, system, "coupling")
    tell("method")
    method = suggested_method(system, kinds[0] if kinds else NORMALISATIONS[0])
    tell("existence")
    lives = existence(system)
    tell("identifiable")
    known = identify(system)
    found: dict[str, Any] = {"text": str(system), "latex": system.latex()}
    found |= {} if one else {"fields": list(system.fields)}
    found |= {
        "linear": system.coupling.is_linear,
        "has_source": system.structure.has_source if one else bool(system.coupling.source),
    }
    tell("symbol")
    found["symbol"] = attempted("symbol", lambda: symbol(system) if one else system.symbol().tolist(), into)
    if not one:
        tell("steady states and Turing's conditions")
        found |= _patterns(system, into)
    questions: dict[str, Callable[[], Any]] = {
        "response_exact": lambda: attempted("response_exact", lambda: _gain(system), into),
        "lipschitz_global": lambda: constants("lipschitz_global", lipschitz_global, system, kinds, into),
        "lipschitz_local": lambda: constants("lipschitz_local", lipschitz_local, system, kinds, into),
        "one_sided": lambda: constants("one_sided", one_sided, system, kinds, into),
    }
    found |= answered(questions, tell) | {"existence": lives.outcome} | ({} if one else {"starts": lives.starts})
    tell("invariant box")
    found |= (_boxes if one else _rectangles)(system, kinds, into)
    questions = {
        "step_limit_euler": lambda: steps("step_limit_euler", "euler", system, kinds, into),
        "step_limit_rk4": lambda: steps("step_limit_rk4", "rk4", system, kinds, into),
        "identifiable": lambda: list(known.combinations),
        "conserved": lambda: _conserved(system, into),
    }
    found |= answered(questions, tell)
    notes |= {"existence": existence_note(lives), "identifiable": known.remark}
    where = " and ".join(map(condition_in_words, system.coefficient_needs))
    about = [f"the equation is defined where {where}"] if where else []
    if one and any(kind in ("channel", "node") for kind in system.coefficients.values()):
        about.append("answers hold per channel; node coefficients enter bounds by their largest modulus")
    notes["coefficients"] = "; ".join(about)
    tell("filter and energy law")
    into.results |= {"existence": lives, "identifiable": known, "method": method}
    return Analysis(
        system, rendered(found, as_text), rendered(found, as_words), {k: v for k, v in notes.items() if v},
        _classes(system, into), _fastest(system, into), tuple(map(str, lives.blow_ups)), *_energy(system, into),
        lives.reason, method, into.results,
    )  # fmt: skip


def _gain(system: System) -> sp.Expr:
    if not system.is_single:
        raise NotApplicable("a gain of one number is that of one field; the symbol is a matrix here")
    return response(system)


def _energy(system: System, into: Collected) -> tuple[str, str]:
    """The law of the Dirichlet energy, and the energy whose gradient flow the system is."""
    if not system.is_single:
        reason = "the energy law is that of one field"
        into.results["energy_law"] = refused(reason)
        return f"not applicable: {reason}", f"not applicable: {reason}"
    law = energy_law(system)
    into.results |= {"energy_law": law, "gradient_flow": law.gradient}
    return f"{law.text}; {law.verdict}", str(law.gradient)


def _classes(system: System, into: Collected) -> tuple[str, ...]:
    found = attempted("filter", lambda: classify(system), Collected(into.results))
    return () if found is None else tuple(map(str, found))


def _fastest(system: System, into: Collected) -> str | None:
    found = attempted("fastest_frequency", lambda: fastest_frequency(system), Collected(into.results))
    return None if found is None else in_words(found)

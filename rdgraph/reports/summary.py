"""`analyse`: the answers to all questions about one system, as fields, as rows of a page and in a few sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any, TypeAlias, TypeVar

import sympy as sp

from rdgraph.answers import Answer, AnswersByName, Status, refused, undecided
from rdgraph.errors import NotApplicable, Undecided, UnknownName
from rdgraph.language.reader import RESERVED, start_of
from rdgraph.reals.budget import ANSWER_SECONDS, PAGE_SECONDS, limited, page
from rdgraph.reals.condition_words import condition_in_words, in_words
from rdgraph.run.engines.engine import silent
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.conservation import ConservedSums, conserved, energy_law
from rdgraph.theory.field_step_limits import StepLimit
from rdgraph.theory.filters import classify, fastest_frequency, response, symbol
from rdgraph.theory.global_existence import GLOBAL, Existence, existence
from rdgraph.theory.identifiability.examination import Identifiability
from rdgraph.theory.identifiability.question import identify
from rdgraph.theory.invariant_boxes import Box, invariant_box, single_box
from rdgraph.theory.lipschitz import Constant, lipschitz_global, lipschitz_local, one_sided
from rdgraph.theory.method_choice import MethodChoice, choose_method
from rdgraph.theory.several_fields.rectangles import Rectangle
from rdgraph.theory.step_limits import step_limit
from rdgraph.vocabulary.normalisations import find_normalisation
from rdgraph.wording import counted, html_table

# ---------------------------------------------------------------------- answers by normalisation
# Answers by normalisation with their notes; every formula inside an answer as text.

Value = TypeVar("Value")
One = TypeVar("One", bound=Answer)
#: Values inside answers that have a text of their own.
Formula: TypeAlias = sp.Basic | Constant | StepLimit


@dataclass
class Collected:
    """Answers by key, and notes on what is missing or conditional."""

    results: dict[str, Answer] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def as_text(answer: Formula) -> str:
    """A formula as sympy reads it."""
    return str(answer if isinstance(answer, sp.Basic) else answer.value)


def as_words(answer: Formula) -> str:
    """A formula as a person writes it; limits are rounded down, bounds up, and a bound is "at most" its value.

    >>> as_words(Constant(sp.Float("1.1997") * sp.Symbol("b"), False, "2-norm"))
    'at most 1.1997*b'
    """
    match answer:
        case StepLimit():
            return in_words(answer.value, -1)
        case Constant():
            return f"{'' if answer.is_sharp else 'at most '}{in_words(answer.value, 1)}"
    return in_words(answer)


def rendered(value: Any, show: Callable[[Formula], str]) -> Any:
    """Every formula inside an answer as text."""
    match value:
        case Mapping():
            return {k: rendered(v, show) for k, v in value.items()}
        case list() | tuple():
            return [rendered(v, show) for v in value]
        case sp.Basic() | Constant() | StepLimit():
            return show(value)
    return value


def answered(questions: Mapping[str, Callable[[], Any]], tell: Callable[[str], object]) -> dict[str, Any]:
    """The answers by key; `tell` is called with the name of each question before it is worked on.

    >>> answered({"step_limit": lambda: 2}, print)
    step limit
    {'step_limit': 2}
    """
    answers = {}
    for key, question in questions.items():
        tell(key.replace("_", " "))
        answers[key] = question()
    return answers


def attempted(key: str, question: Callable[[], Value], into: Collected) -> Value | None:
    """The value a question returns, or None with the reason among the notes; its answer joins the results."""
    try:
        value = question()
    except (NotApplicable, Undecided) as reason:
        into.notes[key], into.results[key] = str(reason), _without(reason)
        return None
    into.results[key] = value if isinstance(value, Answer) else Answer(value, Status.PROVED)
    return value


def _without(problem: NotApplicable | Undecided) -> Answer:
    return undecided(problem) if isinstance(problem, Undecided) else refused(problem)


def remarks(texts: Mapping[str, str]) -> str:
    """Notes by normalisation in one line; what all of them say is written once.

    >>> remarks({"symmetric": "the box is kept; s is a row sum", "row": "the box is kept"})
    'the box is kept; symmetric: s is a row sum'
    """
    clauses = {name: _clauses(text) for name, text in texts.items()}
    shared = [part for part in next(iter(clauses.values()), []) if all(part in parts for parts in clauses.values())]
    others = {name: "; ".join(p for p in parts if p not in shared) for name, parts in clauses.items()}
    return "; ".join([*shared, *(f"{name}: {text}" for name, text in others.items() if text)])


def _clauses(text: str) -> list[str]:
    """The parts of a note between semicolons; all that is assumed is one part."""
    claims, marker, assumed = text.partition("assumes: ")
    return [*filter(None, claims.removesuffix("; ").split("; ")), *([marker + assumed] if marker else [])]


def constants(
    key: str, question: Callable[[System, str], Constant], system: System, kinds: Sequence[str], into: Collected
) -> dict[str, Constant | None] | None:
    """Constants by normalisation, None where there is none of them."""
    by_kind = {n: question(system, n) for n in kinds}
    into.notes[key] = remarks({n: c.remark for n, c in by_kind.items()})
    into.results[key] = AnswersByName(by_kind)
    if all(c.value is None for c in by_kind.values()):
        return None
    return {n: None if c.value is None else c for n, c in by_kind.items()}


def where_known(
    key: str, kinds: Sequence[str], question: Callable[[str], One], into: Collected
) -> tuple[dict[str, One], dict[str, str]]:
    """Answers by normalisation, and the reasons where there is none; all of them join the results."""
    known: dict[str, One] = {}
    parts: dict[str, Answer] = {}
    reasons: dict[str, str] = {}
    for name in kinds:
        try:
            parts[name] = known[name] = question(name)
        except (NotApplicable, Undecided) as reason:
            reasons[name], parts[name] = str(reason), _without(reason)
    into.results[key] = AnswersByName(parts)
    return known, reasons


def with_assumption(note: str, assumes: str) -> str:
    return f"{note}; assumes: {assumes}".removeprefix("; ") if assumes else note


def steps(
    key: str, method: str, system: System, kinds: Sequence[str], into: Collected
) -> dict[str, StepLimit | None] | None:
    """Step limits of a method by normalisation."""
    limits, reasons = where_known(key, kinds, lambda n: step_limit(system, method, n), into)
    reasons |= {n: with_assumption(limit.remark, limit.assumes) for n, limit in limits.items()}
    into.notes[key] = remarks({n: reasons[n] for n in kinds})
    known = {n: limit for n, limit in limits.items() if limit.value is not None}
    return {n: known.get(n) for n in kinds} if known else None


# ---------------------------------------------------------------------- questions
# What a field and several fields are asked in different words.


def existence_note(lives: Existence) -> str:
    """The reason of an answer, from which starts it holds, and blow-ups."""
    starts = [f"from starts with {lives.starts}"] if lives.starts else []
    return "; ".join([lives.reason, *starts, *map(str, lives.blow_ups)])


def _rectangles(system: System, kinds: Sequence[str], into: Collected) -> dict[str, Any]:
    """The invariant rectangles of several fields, and whether these stay non-negative, by normalisation."""
    boxes = {n: box for n in kinds if isinstance(box := invariant_box(system, n), Rectangle)}
    into.notes["invariant_box"] = remarks({n: with_assumption(b.remark, b.assumes) for n, b in boxes.items()})
    into.notes["nonnegative"] = remarks({n: b.nonnegative.reason for n, b in boxes.items()})
    into.results["invariant_box"] = AnswersByName(boxes)
    into.results["nonnegative"] = AnswersByName({n: b.nonnegative for n, b in boxes.items()})
    return {
        "invariant_box": {n: dict(b.bounds) if b.exists and b.bounds else None for n, b in boxes.items()},
        "nonnegative": {n: b.nonnegative.outcome for n, b in boxes.items()},
    }


def _boxes(system: System, kinds: Sequence[str], into: Collected) -> dict[str, Any]:
    """The box of one field by normalisation; None where there is none."""
    boxes, reasons = where_known("invariant_box", kinds, lambda n: single_box(system, n), into)
    reasons |= {n: with_assumption(b.remark, b.assumes) for n, b in boxes.items()}
    into.notes["invariant_box"] = remarks({n: reasons[n] for n in kinds})
    ends = {n: [boxes[n].lower, boxes[n].upper] if n in boxes and boxes[n].exists else None for n in kinds}
    return {"invariant_box": ends if any(ends.values()) else None}


def _conserved(system: System, into: Collected) -> dict[str, str] | list[dict[str, Any]] | None:
    """The weights of the conserved mean, or of every sum of several fields, by normalisation; None without any."""
    try:
        law = conserved(system)
    except Undecided as problem:
        into.notes["conserved"], into.results["conserved"] = f"undecided: {problem}", undecided(problem)
        return None
    into.results["conserved"] = law
    if isinstance(law, ConservedSums):
        into.notes["conserved"] = "; ".join([*map(str, law.sums), *([law.reason] if law.reason else [])])
        sums = [{"sum": one.text, "weights": dict(one.weights), "assumes": dict(one.assumes)} for one in law.sums]
        return sums or None
    if not law.exists:
        into.notes["conserved"] = f"no weighted mean is constant: its rate is the mean of {law.rate}"
        return None
    into.notes["conserved"] = "sum_i w_i H_i is constant, w in terms of the degree d; " + "; ".join(
        f"{n}: {assumed}" for n, assumed in law.assumes.items()
    )
    return law.weights


def _patterns(system: System, into: Collected) -> dict[str, Any]:
    """Homogeneous steady states, and the conditions under which transport makes one of them unstable."""
    from rdgraph.theory.patterns.steady_states import steady_states  # these load numpy, which one field does not need
    from rdgraph.theory.patterns.turing_analysis import turing

    notes = into.notes
    states = attempted("steady_states", lambda: steady_states(system), into)
    patterns = attempted("turing", lambda: turing(system), into)
    if states is not None:
        proof = "complete" if states.is_complete else "not proved to be complete"
        noise = "white noise is left out; " if system.is_noisy else ""
        notes["steady_states"] = f"{noise}{proof}: {states.reason}; assumes: {states.assumes}"
    linear = {}
    if patterns is not None and not system.coupling.is_linear:
        linear = {"symbol": patterns.symbol.tolist()}
        notes["symbol"] = f"of the linearisation at {patterns.state or 'every steady state'}"
    if patterns is not None:
        notes["turing"] = f"for lam in (0, {patterns.to}]; assumes: {patterns.assumes}"
    return linear | {
        "steady_states": str(Status.UNDECIDED) if states is None else states.to_dict(),
        "turing": str(Status.UNDECIDED) if patterns is None else patterns.to_dict(),
    }


def suggested_method(system: System, normalisation: str) -> MethodChoice:
    """The method that fits the system; where none follows from the equation in time, the choice says so."""
    try:
        return limited(ANSWER_SECONDS, choose_method, system, normalisation=normalisation)
    except (NotApplicable, Undecided) as problem:
        return MethodChoice(str(Status.UNDECIDED), None, str(problem))


# ---------------------------------------------------------------------- analysis
#: The normalisations that are asked about by default.
NORMALISATIONS = ("symmetric", "row")


@dataclass(frozen=True, eq=False, repr=False)
class Analysis(Mapping[str, Answer]):
    """The answers to all questions by key: `analysis["existence"]`, `analysis["lipschitz_global"]["row"]`.

    `answers` and `words` are the same as strings for sympy and in words, `notes` what is missing or conditional.
    `headlines` are the main answers, `rows` all of them.
    """

    system: System
    answers: dict[str, Any]
    words: dict[str, Any]
    notes: dict[str, str]
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

    @property
    def headlines(self) -> tuple[tuple[str, str], ...]:
        """The main answers by topic, in a sentence or two each, undecided ones included.

        >>> import rdgraph as rd
        >>> for topic, sentence in rd.analyse("FB*").headlines[:3]: print(f"{topic}: {sentence}")
        system: linear in H; no source term
        filter: low-pass if beta < alpha; all-pass if beta = alpha; high-pass if beta > alpha
        existence: every solution exists for all time (the vector field is affine in H)
        """
        return headlines(self)

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """Every answer: its heading, the answer in words, and its conditions or reasons."""
        return rows(self)

    def __str__(self) -> str:
        return "\n".join([repr(self.system), *(f"{topic}: {text}" for topic, text in self.headlines)])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(repr(self.system), self.rows)

    def to_dict(self) -> dict[str, Any]:
        """One flat object: strings sympy can read, None where a question does not apply, explained under `notes`.

        `engines` says by key who decided an answer, where it rests on questions to a solver.
        """
        engines = {key: answer.engines for key, answer in self.results.items() if answer.engines}
        return {**self.answers, "notes": dict(self.notes), "engines": engines}


def analyse(
    system: System | str, normalisations: Sequence[str] = NORMALISATIONS, *, tell: Callable[[str], object] = silent
) -> Analysis:
    """Answer every question about a system, within forty seconds of computing time.

    Args:
        system: the system, a name of the catalogue or a line of text.
        normalisations: the normalisations for which bounds, boxes and step limits are derived.
        tell: called with the name of each question before it is worked on.

    Returns:
        The answers by key, with notes on what is missing or conditional, and the method that fits the system. A
        question that does not apply has an answer too, with the status refused.

    Raises:
        LanguageError: the text is not an equation.
        UnknownName: a normalisation is not registered.
        NotApplicable: the equation is too large for exact algebra.
        Undecided: the normal form took too long.

    >>> import rdgraph as rd
    >>> analysis = rd.analyse("FB")
    >>> print(analysis["identifiable"])
    alpha - beta is identifiable (proved)
    >>> print(rd.analyse("BS")["lipschitz_global"]["row"])
    2*(alpha + beta) in the inf-norm (proved)
    """
    system = parse(system)
    kinds = tuple(find_normalisation(name).name for name in normalisations)
    return page(PAGE_SECONDS, _answers, system, kinds, tell)


def _answers(system: System, kinds: Sequence[str], tell: Callable[[str], object]) -> Analysis:
    """The analysis of one equation dH/dt = f(H), of several fields, or of an equation with time, noise or operators."""
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
    answers: dict[str, Any] = {"text": str(system), "latex": system.latex()}
    answers |= {} if one else {"fields": list(system.fields)}
    answers |= {
        "linear": system.coupling.is_linear,
        "has_source": system.structure.has_source if one else bool(system.coupling.source),
    }
    tell("symbol")
    answers["symbol"] = attempted("symbol", lambda: symbol(system) if one else system.symbol().tolist(), into)
    if not one:
        tell("steady states and Turing's conditions")
        answers |= _patterns(system, into)
    questions: dict[str, Callable[[], Any]] = {
        "response_exact": lambda: attempted("response_exact", lambda: _gain(system), into),
        "lipschitz_global": lambda: constants("lipschitz_global", lipschitz_global, system, kinds, into),
        "lipschitz_local": lambda: constants("lipschitz_local", lipschitz_local, system, kinds, into),
        "one_sided": lambda: constants("one_sided", one_sided, system, kinds, into),
    }
    answers |= answered(questions, tell) | {"existence": lives.outcome} | ({} if one else {"starts": lives.starts})
    tell("invariant box")
    answers |= (_boxes if one else _rectangles)(system, kinds, into)
    questions = {
        "step_limit_euler": lambda: steps("step_limit_euler", "euler", system, kinds, into),
        "step_limit_rk4": lambda: steps("step_limit_rk4", "rk4", system, kinds, into),
        "identifiable": lambda: list(known.combinations),
        "conserved": lambda: _conserved(system, into),
    }
    answers |= answered(questions, tell)
    notes |= {"existence": existence_note(lives), "identifiable": known.remark}
    where = " and ".join(map(condition_in_words, system.coefficient_needs))
    about = [f"the equation is defined where {where}"] if where else []
    if one and any(kind in ("channel", "node") for kind in system.coefficients.values()):
        about.append("answers hold per channel; node coefficients enter bounds by their largest modulus")
    notes["coefficients"] = "; ".join(about)
    tell("filter and energy law")
    into.results |= {"existence": lives, "identifiable": known, "method": method}
    _of_one_field(system, into)
    return Analysis(
        system, rendered(answers, as_text), rendered(answers, as_words), {k: v for k, v in notes.items() if v},
        method, into.results,
    )  # fmt: skip


def _gain(system: System) -> sp.Expr:
    if not system.is_single:
        raise NotApplicable("the gain is defined for one field; here the symbol is a matrix")
    return response(system)


def _of_one_field(system: System, into: Collected) -> None:
    """Filter, fastest frequency, energy law and gradient flow, which are defined for one field."""
    beyond = Collected(into.results)
    attempted("filter", lambda: classify(system), beyond)
    attempted("fastest_frequency", lambda: fastest_frequency(system), beyond)
    if system.is_single:
        law = energy_law(system)
        into.results |= {"energy_law": law, "gradient_flow": law.gradient}
    else:
        into.results["energy_law"] = refused("the energy law is defined for one field")


# ---------------------------------------------------------------------- headlines
#: Most characters of a headline; the rows have the whole text.
HEADLINE = 230


def headlines(analysis: Analysis) -> tuple[tuple[str, str], ...]:
    """The main answers of an analysis by topic, the most important ones first."""
    topics: dict[str, Callable[[Analysis], str]] = {
        "system": _nature, "patterns": _outlook, "steady states": _states, "filter": _filter, "existence": _existence,
        "bounds": _bounds, "step": _steps, "energy": _energy, "gradient flow": _gradient, "identifiable": _identifiable,
        "method": _method,
    }  # fmt: skip
    texts = {topic: _brief(sentence(analysis)) for topic, sentence in topics.items()}
    return tuple((topic, text) for topic, text in texts.items() if text)


def _brief(text: str) -> str:
    """As many parts of a text as a headline holds."""
    short, *parts = text.split("; ")
    for part in parts:
        if len(short) + len(part) > HEADLINE:
            return shorten(f"{short}; ...", HEADLINE, placeholder=" ...")
        short = f"{short}; {part}"
    return shorten(short, HEADLINE, placeholder=" ...")


def _nature(analysis: Analysis) -> str:
    fields = analysis.system.fields
    kind = "linear" if analysis.answers["linear"] else "nonlinear"
    sources = ", ".join(map(start_of, fields)) if len(fields) == 1 else "from the starts"
    source = f"source {sources}" if analysis.answers["has_source"] else "no source term"
    return f"{kind} in {', '.join(fields)}; {source}"


def _outlook(analysis: Analysis) -> str:
    """Turing, Hopf and further instabilities of several fields."""
    patterns = analysis.words.get("turing")
    if not isinstance(patterns, Mapping):
        return "" if patterns is None else f"undecided: {analysis.notes.get('turing', '')}"
    return "; ".join(_instabilities(patterns))


def _instabilities(patterns: Mapping[str, Any]) -> list[str]:
    """A line for each set of conditions: whether they can hold, and an example; the reasons of equal ones once."""
    lines, reason = [], ""
    for name, conditions in patterns["sets"].items():
        example = ", ".join(f"{letter} = {value}" for letter, value in conditions["example"].items())
        why = f", for example at {example}" if example else ""
        if not example and conditions["reason"] != reason:
            reason = conditions["reason"]
            why = f" ({reason})" if reason else ""
        lines.append(f"{_INSTABILITIES.get(name, name)}: {conditions['outcome']}{why}")
    return lines


#: The sets of conditions of `turing` in words.
_INSTABILITIES = {
    "turing": "Turing patterns", "hopf": "oscillations (Hopf)", "turing-hopf": "both at once (Turing-Hopf)",
    "wave": "waves", "anti-diffusion": "growth by transport",
}  # fmt: skip


def _states(analysis: Analysis) -> str:
    states = analysis.words.get("steady_states")
    return "; ".join(state["words"] for state in states["states"]) if isinstance(states, Mapping) else ""


def _filter(analysis: Analysis) -> str:
    classes = analysis.results["filter"].value
    return "; ".join(map(str, classes or ()))


def _existence(analysis: Analysis) -> str:
    lives = analysis["existence"]
    if not isinstance(lives, Existence) or lives.value is None:
        return f"undecided whether every solution exists for all time: {lives.why}"
    if lives.value != GLOBAL:
        return lives.headline
    starts = f"every solution that starts with {lives.starts}" if lives.starts else "every solution"
    return f"{starts} exists for all time ({lives.why})"


def _bounds(analysis: Analysis) -> str:
    text = "; ".join(by_name({n: _region(box) for n, box in _parts(analysis, "invariant_box").items()}))
    return f"{text}; s is {RESERVED['s']}" if re.search(r"(?<![\w'])s(?!\w)", text) else text


def _region(box: Answer) -> str:
    """The invariant box or rectangle, the proof that there is none, or that none is known."""
    match box:
        case Box(lower=None, is_left=is_left, regular=regular) if is_left or regular is not None:
            where = f" at {' and '.join(map(condition_in_words, box.conditions))}" if box.at else ""
            escape = f"proved: runs leave every interval of states on some graph{where}" if is_left else ""
            region = "" if regular is None else f"{_interval(*regular)} is invariant on regular graphs"
            return ", ".join(filter(None, [region, escape]))
        case Box(lower=lower, upper=upper) if lower is not None:
            where = "" if box.where == sp.true else f" if {condition_in_words(box.where)}"
            inside = "" if box.start is None else f" for H0 in {_interval(*box.start)}"
            return f"{_interval(lower, upper)} is invariant{inside}{where}"
        case Rectangle(is_kept=True, bounds=bounds) if bounds:
            return f"{box.inside} is invariant"
        case Rectangle(is_kept=False):
            return f"proved: {box.inside} is not invariant" if box.bounds else "proved: no rectangle is invariant"
    return "no invariant region is known" if box.status == Status.UNDECIDED else box.headline


def _interval(lower: sp.Expr, upper: sp.Expr) -> str:
    return f"[{in_words(lower)}, {in_words(upper)}]"


#: What a step limit guarantees, by `StepLimit.keeps`.
_KEEPS = {
    "stability": "frequencies that the flow damps stay damped",
    "box": "states stay in the interval above",
    "linearised": "stable near the constant states",
    "slopes": "modes that the flow damps stay damped",
    "equal slopes": "modes that the flow damps stay damped at states equal in all nodes",
    "distances": "the distance of two runs stays within its bound",
}


def _steps(analysis: Analysis) -> str:
    """The step limits of Euler and RK4 with their guarantees, each of which is written once."""
    by_guarantee: dict[str, list[str]] = {}
    for method, key in (("Euler", "step_limit_euler"), ("RK4", "step_limit_rk4")):
        limits = {n: x for n, x in _parts(analysis, key).items() if isinstance(x, StepLimit) and x.value is not None}
        for guarantee in dict.fromkeys(_KEEPS.get(x.keeps, "") for x in limits.values()):
            texts = {n: x.headline for n, x in limits.items() if _KEEPS.get(x.keeps, "") == guarantee}
            by_guarantee.setdefault(guarantee, []).append(f"{method} {' or '.join(by_name(texts))}")
    known = [", ".join(limits) + (f": {guarantee}" if guarantee else "") for guarantee, limits in by_guarantee.items()]
    return "; ".join(known) or "no step limit is known"


def _energy(analysis: Analysis) -> str:
    law = analysis["energy_law"]
    if law.status in (Status.REFUSED, Status.UNDECIDED):
        return ""
    return f"the Laplacian energy {law.reason.partition('; ')[0]}" if law.reason else ""


def _gradient(analysis: Analysis) -> str:
    flow = analysis.results.get("gradient_flow")
    return "" if flow is None or flow.value is None else f"for symmetric A: {flow.value} never increases"


def _identifiable(analysis: Analysis) -> str:
    known = analysis["identifiable"]
    if known.value:
        return ", ".join(map(in_words, known.value))
    rank = known.rank if isinstance(known, Identifiability) else 0
    if rank and known.status != Status.UNDECIDED:
        return f"{counted(rank, 'combination')} without a closed form"
    return f"none ({known.remark})" if known.remark else ""


def _method(analysis: Analysis) -> str:
    step = "" if analysis.method.step is None else f", step {analysis.method.step:g}"
    return f'method="auto" selects {analysis.method.method}{step}: {analysis.method.reason}'


def _parts(analysis: Analysis, key: str) -> dict[str, Answer]:
    """The answers to a question by normalisation."""
    answer = analysis.results.get(key)
    return answer.parts if isinstance(answer, AnswersByName) else {}


def by_name(texts: Mapping[str, str]) -> list[str]:
    """Texts by normalisation, each once; the names follow where they differ.

    >>> by_name({"symmetric": "[0, s]", "row": "[0, 1]"}), by_name({"symmetric": "1/a", "row": "1/a"})
    (['[0, s] (symmetric)', '[0, 1] (row)'], ['1/a'])
    """
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text, []).append(name)
    return list(names) if len(names) == 1 else [f"{text} ({', '.join(kinds)})" for text, kinds in names.items()]


# ---------------------------------------------------------------------- rows
#: The keys of an analysis as headings.
HEADINGS = {
    "fields": "fields", "linear": "linear", "has_source": "source", "symbol": "symbol",
    "steady_states": "steady states", "turing": "patterns", "response_exact": "gain until T",
    "lipschitz_global": "Lipschitz constant", "lipschitz_local": "Lipschitz, |h| <= R",
    "one_sided": "one-sided constant", "existence": "existence", "starts": "starts",
    "invariant_box": "invariant region", "nonnegative": "stays non-negative", "step_limit_euler": "step limit, Euler",
    "step_limit_rk4": "step limit, RK4", "identifiable": "identifiable", "conserved": "conserved",
}  # fmt: skip
_DECIDED = {"proved": "yes", "refuted": "no"}


def rows(analysis: Analysis) -> tuple[tuple[str, str, str], ...]:
    """Every answer of an analysis: its heading, the answer in words and its note; a note that comes again is named."""
    notes = {key: note.removeprefix("undecided: ") for key, note in analysis.notes.items()}
    notes["existence"] = analysis["existence"].why  # the answer names the blow-ups
    texts = [(HEADINGS[key], _row(analysis, key), notes.get(key, "")) for key in HEADINGS if key in analysis.words]
    results = analysis.results
    if results["filter"].value:
        texts.append(("filter", "\n".join(map(str, results["filter"].value)), "of the exact flow, for lam in [0, 2]"))
    if results["fastest_frequency"].value is not None:
        texts.append(("fastest frequency", in_words(results["fastest_frequency"].value), ""))
    step = "" if analysis.method.step is None else f", step {analysis.method.step:g}"
    texts.append(("method", f"{analysis.method.method}{step}", analysis.method.reason))
    if "gradient_flow" in results:
        law = results["energy_law"]
        texts.append(("energy law", f"{law.value}; {law.reason}", "E = tr(H^T L H), A symmetric"))
        texts.append(("gradient flow", str(results["gradient_flow"]), "<X, Y> = tr(X^T Y), A symmetric"))
    if "coefficients" in analysis.notes:
        texts.append(("coefficients", analysis.notes["coefficients"], ""))
    return tuple(_without_repeats([row for row in texts if row[1]]))


def _without_repeats(texts: list[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    first: dict[str, str] = {}
    for heading, text, note in texts:
        earlier = first.setdefault(note, heading)
        yield heading, text, note if earlier == heading or len(note) < 40 else f'as for "{earlier}"'


def _row(analysis: Analysis, key: str) -> str:
    value = analysis.words[key]
    match key, value:
        case ("invariant_box", _):
            return "\n".join(by_name({n: _region(box) for n, box in _parts(analysis, key).items()}))
        case ("existence", _):
            return analysis[key].headline if analysis[key].value is not None else str(Status.UNDECIDED)
        case ("nonnegative", Mapping()):
            return "\n".join(by_name({n: _DECIDED.get(str(text), str(text)) for n, text in value.items()}))
        case ("steady_states", Mapping()):
            return "\n".join(state["words"] for state in value["states"]) or "none found"
        case ("turing", Mapping()):
            return "\n".join(_instabilities(value))
        case ("symbol", list()):
            return "\n".join(f"[{', '.join(row)}]" for row in value)
        case ("conserved", list()):
            return "\n".join(one["sum"] for one in value)
        case (_, None):
            return _absent(analysis.results.get(key))
        case (_, bool()):
            return "yes" if value else "no"
        case (_, Mapping()):
            return "\n".join(by_name({n: "none" if text is None else str(text) for n, text in value.items()}))
        case (_, list()):
            return ", ".join(value) or "none found"
    return str(value)


def _absent(answer: Answer | None) -> str:
    """What stands for a missing value: that there is none, that none is known, or that the question does not apply."""
    if answer is None or answer.status == Status.UNDECIDED:
        return "undecided"
    return "not applicable" if answer.status == Status.REFUSED else "none"

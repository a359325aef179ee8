"""One system in two forms that the tool proves equal: the same question gets the same answer."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from tests.adversary import expressions, formulas, rewriting
from tests.adversary.answers import Both
from tests.adversary.drawing import draw
from tests.adversary.outcome import Question
from tests.adversary.systems import Drawn

FAMILY = "forms"
Random = np.random.Generator
#: Values of the coefficients at which formulas are compared, and how closely.
CASES, CLOSE = 6, 1e-9
#: What explains an answer in words, and where a form may show.
WORDS = ("note", "means", "reason", "verdict", "findings", "rate")
#: Letters of answers that are not coefficients.
OTHERS = ("R", "s", "lam", "T", "h0", "t", "H", "norm_W", "epsilon")

#: What an identity is put into.
WRAPS = (
    "{}", "-L@H + {}", "beta*({})", "-alpha*L@H + beta*({})", "alpha*(A@H - H) - beta*({})", "({})*H",
    "-alpha*L@({})", "{} - gamma*H", "A@({}) - H", "beta*({}) - H**3", "gamma*(H0 - H) + beta*({})",
)  # fmt: skip

QUESTIONS = (
    *(Question(FAMILY, name, {"normalisation": n})
      for name in ("lipschitz_global", "lipschitz_local", "one_sided") for n in ("symmetric", "row")),
    Question(FAMILY, "invariant_box", {"normalisation": "row"}), Question(FAMILY, "existence"),
    Question(FAMILY, "step_limit", {"method": "euler", "normalisation": "symmetric"}),
    Question(FAMILY, "energy_law"), Question(FAMILY, "conserved"), Question(FAMILY, "identify"),
    Question(FAMILY, "steady_states", {"values": None}), Question(FAMILY, "reaction_flow"),
    Question(FAMILY, "symbol"), Question(FAMILY, "classify"),
)  # fmt: skip


def questions(drawn: Drawn, rng: Random) -> list[Question]:
    """None of its own: pairs are drawn with theirs."""
    return []


def drawn_pair(rng: Random, count: int) -> tuple[Drawn, list[Question]]:
    """A system, and questions about it and about the same system in another form."""
    first, second = _by_identity(rng) if rng.random() < 0.7 else _rewritten(rng)
    chosen = rng.choice(len(QUESTIONS), min(count, len(QUESTIONS)), replace=False)
    return first, [
        Question(FAMILY, "both", {"other": second.text, "name": QUESTIONS[i].name, "arguments": QUESTIONS[i].arguments})
        for i in sorted(chosen)
    ]


def _by_identity(rng: Random) -> tuple[Drawn, Drawn]:
    pairs = rewriting.IDENTITIES
    sides = pairs[int(rng.integers(len(pairs)))]
    if rng.random() < 0.3:  # of another argument
        inner = str(rng.choice(["(2*H)", "(H - 1)", "(A@H)", "(alpha*H)"]))
        sides = tuple(rewriting.inserted(side, inner) for side in sides)
    wrap = str(rng.choice(WRAPS))
    bodies = [wrap.format(side) for side in sides]
    if rng.random() < 0.5:
        bodies[1] = rewriting.rewritten(bodies[1], rng)
    names = set().union(*map(expressions.names, bodies)) - set("HAIL") - {"H0"}
    kinds = {n: "node" if n == "M" else "scalar" for n in names}
    first, second = (
        Drawn(body, tuple(sorted((n, k) for n, k in kinds.items() if n in expressions.names(body))), recipe="forms")
        for body in bodies
    )
    return first, second


def _rewritten(rng: Random) -> tuple[Drawn, Drawn]:
    drawn = draw(rng)
    return drawn, Drawn(rewriting.rewritten(drawn.body, rng), drawn.kinds, drawn.statements, learned=drawn.learned)


# ---------------------------------------------------------------------- checking
def check(drawn: Drawn, question: Question, answer: Both, rng: Random) -> str | None:
    """Where the two answers differ, or None."""
    values = [_values(drawn, rng) for _ in range(CASES)]
    return _difference(answer.first, answer.second, values, question.arguments["name"])


def _values(drawn: Drawn, rng: Random) -> dict[str, float]:
    """One number for each coefficient, and for the other letters of answers."""
    found = {name: float(np.exp(rng.uniform(-1, 1))) for name in OTHERS}
    for name, value in drawn.values(rng, 1, 1).items():
        entries = np.ravel(np.asarray(value, dtype=float))
        found[name] = float(entries[0])
    return found


def _difference(first: Any, second: Any, values: list[dict[str, float]], place: str) -> str | None:
    """Where two answers differ, numbers up to rounding."""
    if type(first) is not type(second) and not (_is_formula(first) and _is_formula(second)):
        return f"{place}: {first!r} and {second!r}"
    if isinstance(first, tuple):
        if len(first) != len(second):
            return f"{place}: {first!r} and {second!r}"
        parts = [(a, b, f"{place}[{i}]") for i, (a, b) in enumerate(zip(first, second, strict=True))]
    elif hasattr(first, "__dataclass_fields__"):
        shown = [f.name for f in fields(first) if f.name not in WORDS]
        parts = [(getattr(first, n), getattr(second, n), f"{place}.{n}") for n in shown]
    else:
        return None if _are_equal(first, second, values) else f"{place}: {first!r} and {second!r}"
    return next((told for a, b, where in parts if (told := _difference(a, b, values, where))), None)


def _is_formula(value: Any) -> bool:
    return isinstance(value, str)


def _are_equal(first: Any, second: Any, values: list[dict[str, float]]) -> bool:
    if first == second or not isinstance(first, str) or not isinstance(second, str):
        return bool(first == second)
    if first.startswith("on undirected") or "never increases" in first:
        return _same_law(first, second, values)
    try:
        return all(_close(*(formulas.evaluate(text, x) for text in (first, second))) for x in values)
    except (formulas.Unreadable, KeyError, TypeError):
        return False


def _same_law(first: str, second: str, values: list[dict[str, float]]) -> bool:
    """Laws of the energy: the same words around conditions that agree."""
    sides = [text.replace(" where ", " iff ").partition(" iff ") for text in (first, second)]
    if sides[0][0] != sides[1][0] or bool(sides[0][2]) != bool(sides[1][2]):
        return False
    conditions = [side[2].partition(" <= 0")[0] for side in sides]
    return not conditions[0] or all(_close(*(formulas.evaluate(c, x) for c in conditions)) for x in values)


def _close(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b) or abs(a - b) <= CLOSE * (1 + abs(a)))

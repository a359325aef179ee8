"""Certificates: the obligations behind an answer with a proof or a point for each, for `rdgraph-check`.

A certificate is a plain dict, the same on every run: `json.dumps` writes it, `rdgraph.check_certificate.check` (or the
command `rdgraph-check FILE`) checks it without a solver.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from rdgraph.check_certificate import FORMAT, Polynomial, Problem, Rejected, check_model, check_obligation, quotient
from rdgraph.reals.judge import Identity, Obligation, Possibility, Record, recorded
from rdgraph.reals.refutations import refuted

#: What a checker cannot see, as every certificate says it.
STEPS = (
    "The question became the conditions listed with each obligation; this step is not checked.",
    "Equal equations became terms in prefix form, with definitions of operators; this step is not checked.",
    "The conditions became SMT-LIB: roots are variables with their equations, pieces are ite, divisors are not zero.",
)


def certificate(question: Callable[..., Any], system: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
    """The answer to a question about a system, with every obligation it rests on and its proof.

    Args:
        question: a function that asks, such as `rd.existence`.
        system: its first argument.
        arguments: its further arguments.
        options: its options.

    Returns:
        The certificate as plain values. An obligation for which no proof was found has None for it.

    >>> import rdgraph as rd
    >>> made = certificate(rd.lipschitz_global, rd.catalogue["BS"])
    >>> made["statement"]["answer"], len(made["obligations"]) > 0
    ('2*(alpha + beta) in the 2-norm (proved)', True)
    >>> from rdgraph.check_certificate import check
    >>> check(made)[1]                             # obligations without a proof
    0
    """
    with recorded() as asked:
        answer = question(system, *arguments, **options)
    statement = {
        "question": getattr(question, "__name__", str(question)),
        "system": str(system),
        "arguments": [str(a) for a in arguments] + [f"{name}={value}" for name, value in sorted(options.items())],
        "answer": str(answer),
    }
    if is_dataclass(witness := getattr(answer, "witness", None)):
        statement["counter-example"] = asdict(witness)  # type: ignore[arg-type]
    return certified(statement, asked)


def certified(statement: Mapping[str, Any], asked: Record) -> dict[str, Any]:
    """A certificate of identities and of obligations that were decided, each once, in the order in which they came."""
    identities = [_identity_entry(identity) for identity in dict.fromkeys(asked.identities)]
    decided = {o.smt2: o for o in reversed(asked) if o.outcome is not Possibility.UNKNOWN}
    entries = [_entry(obligation) for obligation in reversed(decided.values())]
    return {"format": FORMAT, "statement": dict(statement), "steps": list(STEPS), "obligations": identities + entries}


def write_certificate(path: Path, made: Mapping[str, Any]) -> None:
    """Write a certificate as JSON, with one line for each obligation."""
    head = json.dumps({k: v for k, v in made.items() if k != "obligations"}, indent=1)[:-2]
    entries = ",\n".join("  " + json.dumps(entry) for entry in made["obligations"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{head},\n "obligations": [\n{entries}\n ]\n}}\n', encoding="utf-8")


@lru_cache(maxsize=10_000)
def _expands(identity: Identity) -> bool:
    try:
        check_obligation(_identity_fields(identity) | {"proof": "expansion"})
    except (Rejected, RecursionError):
        return False
    return True


def _identity_fields(identity: Identity) -> dict[str, Any]:
    return {
        "conditions": identity.statement, "claim": "identity", "left": identity.left, "right": identity.right,
        "given": dict(identity.given), "kinds": dict(identity.kinds),
    }  # fmt: skip


def _identity_entry(identity: Identity) -> dict[str, Any]:
    """An identity with its proof, which is None where more was used than that operators and matrices are linear."""
    return _identity_fields(identity) | {"proof": "expansion" if _expands(identity) else None}


def _entry(obligation: Obligation) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "conditions": obligation.statement,
        "smt": obligation.smt2,
        "claim": obligation.outcome.value,
    }
    if obligation.outcome is Possibility.IMPOSSIBLE:
        return entry | {"proof": proof_of(obligation.smt2)}
    return entry | {"model": model_of(obligation.smt2, tuple(sorted(obligation.point.items())))}


@lru_cache(maxsize=10_000)
def proof_of(smt2: str) -> dict[str, Any] | None:
    """A proof that no real numbers satisfy the text; None where none was found that the checker accepts."""
    try:
        problem = Problem(smt2)
        proof = refuted(problem.assertions, problem.letters)
        if proof is not None:
            check_obligation({"claim": "unsat", "smt": smt2, "proof": proof})
    except Rejected:
        return None
    return proof


@lru_cache(maxsize=10_000)
def model_of(smt2: str, point: tuple[tuple[str, Fraction], ...]) -> dict[str, str] | None:
    """Rational numbers that satisfy the text, from a point for its letters; None where they would be irrational."""
    problem = Problem(smt2)
    for guess in _guesses(problem, dict(point)):
        try:
            check_model(problem, guess)
        except (Rejected, ZeroDivisionError):
            continue
        return {name: str(guess[name]) for name in sorted(guess)}
    return None


def _guesses(problem: Problem, point: dict[str, Fraction]) -> Iterator[dict[str, Fraction]]:
    """Points near this one at which the roots are rational, coarser ones first; missing letters get small numbers."""
    roots = [parts for formula in problem.assertions if (parts := _root_of(formula)) is not None]
    helpers = {name for name, _, _ in roots}
    free = sorted(problem.letters - helpers - point.keys())
    for number in (1, -1, 0, Fraction(1, 2), 2) if free else (1,):
        start = {**dict.fromkeys(free, Fraction(number)), **point}
        for grain in (1, 2, 4, 16, 64, 1024) if roots else (1,):
            guess = dict(start)
            if all(_put_root(guess, root, grain) for root in roots):
                yield guess


def _root_of(formula: Any) -> tuple[str, int, Any] | None:
    """Letter, order and radicand, where the formula says that a letter is a root."""
    match formula:
        case ["=>", _, ["and", [">=", str(name), "0.0"], ["=", ["*", *factors], inside]]] if set(factors) == {name}:
            return name, len(factors), inside
    return None


def _put_root(guess: dict[str, Fraction], root: tuple[str, int, Any], grain: int) -> bool:
    """Give the root a rational value, and one letter of the radicand the value that fits; whether that can be done."""
    name, order, inside = root
    try:
        value = max(_value(inside, guess), Fraction(0))
        exact, size = _rational_root(value, order), float(value) ** (1 / order)
    except (Rejected, ArithmeticError):  # no value, or one beyond the numbers of the machine
        return False
    if exact is not None:
        guess[name] = exact
        return True
    near = Fraction(round(size * grain), grain)
    for letter in sorted(x for x in guess if "!" not in x):
        try:
            zero, one, two = (_value(inside, {**guess, letter: Fraction(k)}) for k in (0, 1, 2))
        except (Rejected, ArithmeticError):
            continue
        if one != zero and two - one == one - zero:
            guess[letter] = (near**order - zero) / (one - zero)
            guess[name] = near
            return True
    return False


def _value(term: Any, values: Mapping[str, Fraction]) -> Fraction:
    """The value of a term without ite."""
    numerator, denominators = quotient(term, set(values))
    top, *bottom = (_at(p, values) for p in (numerator, *(dict(factor) for factor in denominators)))
    return top / math.prod(b**power for b, power in zip(bottom, denominators.values(), strict=True))


def _at(polynomial: Polynomial, values: Mapping[str, Fraction]) -> Fraction:
    products = (number * math.prod(values[x] ** power for x, power in m) for m, number in polynomial.items())
    return sum(products, Fraction(0))


def _rational_root(value: Fraction, order: int) -> Fraction | None:
    top, bottom = (round(part ** (1 / order)) for part in (value.numerator, value.denominator))
    return Fraction(top, bottom) if bottom and Fraction(top, bottom) ** order == value else None

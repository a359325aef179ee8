"""The data of one equation in the page: formulas of the symbolic core in JavaScript, and its answers in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import T, lam, public, tau
from rdgraph.language.normal_form import Act, Mix
from rdgraph.language.tree import Kind
from rdgraph.reals.budget import limited
from rdgraph.reals.condition_words import in_words
from rdgraph.reports.field_checks import FIELD_PARTS
from rdgraph.reports.preflight_report import PARTS
from rdgraph.reports.run_settings import RunSettings, read_run
from rdgraph.systems.system import System
from rdgraph.theory.filters import classify, growth_rate
from rdgraph.theory.patterns.kinetics import system_kinetics
from rdgraph.theory.patterns.steady_states import steady_states
from rdgraph.theory.rate_bounds import rate_bound
from rdgraph.theory.step_limits import step_limit
from rdgraph.vocabulary.methods import records, tableau
from studies.explorer.javascript_source import javascript, letter

# ---------------------------------------------------------------------- field plan
# The right-hand sides as a plan for the page: products with A, one after the other, and a formula for each state.


def field_plan(system: System) -> dict[str, Any]:
    """Products `{into, of}` in their order, and the rates of the states, all in JavaScript, for one channel.

    Every product is that of A with an elementwise formula in states, coefficients and earlier products; a mixing matrix
    of one channel is a number. The formulas are those of the normal form, which is what is proved and lowered. White
    noise is left out.

    >>> from rdgraph.systems.parser import parse
    >>> field_plan(parse("BS"))["products"]
    [{'into': '$_0', 'of': '$H'}, {'into': '$_1', 'of': '$_0'}]

    Raises:
        NotApplicable: for operators other than A, and for formulas too large to multiply out.
    """
    if further := [name for name in system.operators.names if name in system.letters]:
        raise NotApplicable(f"the explorer draws equations in A alone, and this one has the operator {further[0]}")
    lowering = _Lowering()
    rates = [javascript(lowering.replaced(public(system.normals[state]))) for state in system.fields]
    products = [{"into": letter(x.name), "of": javascript(of)} for of, x in lowering.products.items()]
    return {"products": products, "rates": rates}


class _Lowering:
    """Replaces products with operators by symbols; equal products share one."""

    def __init__(self) -> None:
        self.products: dict[sp.Expr, sp.Symbol] = {}

    def replaced(self, expression: sp.Basic) -> Any:
        match expression:
            case Act():
                inner = self.replaced(expression.inner)
                for _ in expression.word:
                    inner = self.products.setdefault(inner, sp.Symbol(f"_{len(self.products)}"))
                return inner
            case Mix():
                return self.replaced(expression.inner) * sp.Mul(*expression.word)
        if not expression.args:
            return expression
        return expression.func(*map(self.replaced, expression.args))


# ---------------------------------------------------------------------- equation bundle
#: Seconds of one part of a bundle.
PART_SECONDS = 4.0
#: The normalisations of the page.
NORMALISATIONS = ("symmetric", "row")
_SIGNS = {"positive": "> 0", "negative": "< 0", "nonnegative": ">= 0", "nonpositive": "<= 0"}
#: Full steps of a run, and what is left of the time after them.
FULL, REST = sp.Symbol("full"), sp.Symbol("rest")


def page_methods() -> list[str]:
    """The methods of the page: Runge-Kutta methods with a fixed step."""
    return [name for name, record in records.items() if record.is_runge_kutta]


def make_bundle(system: System, seconds: float = PART_SECONDS) -> dict[str, Any]:
    """The bundle of a system; a part without an answer is an object with the `reason`.

    Args:
        system: any system of the language.
        seconds: of every part; one that takes longer is undecided.

    Returns:
        Values that JSON has: `text`, `fields`, `coefficients`, what is assumed of them, `plan`, `kinetics`, `steady`,
        by normalisation `existence` and `steps`, and for one linear field `response`, `classes` and `growth`.
    """
    parts: dict[str, Callable[[System], Any]] = {
        "plan": field_plan, "kinetics": _kinetics, "steady": _steady, "classes": _classes, "growth": _growth,
        "response": _response,
    }  # fmt: skip
    judged: dict[str, Callable[[System, str], Any]] = {"existence": _existence, "steps": _steps}
    bundle: dict[str, Any] = {
        "text": str(system),
        "latex": system.latex(),
        "fields": list(system.fields),
        "coefficients": {name: _coefficient(system, name, kind) for name, kind in system.coefficients.items()},
        "assumes": [{"words": words, "condition": condition} for words, condition in _assumed(system)],
        "noisy": system.is_noisy,
    }
    bundle |= {name: _or_reason(seconds, part, system) for name, part in parts.items()}
    for name, question in judged.items():
        bundle[name] = {kind: _or_reason(seconds, question, system, kind) for kind in NORMALISATIONS}
    return bundle


def _or_reason(seconds: float, part: Callable[..., Any], *asked: Any) -> Any:
    try:
        return limited(seconds, part, *asked)
    except (NotApplicable, Undecided) as problem:
        return {"reason": str(problem)}


def _coefficient(system: System, name: str, kind: Kind) -> dict[str, str]:
    return {"kind": str(kind), "sign": system.assumptions.sign(name)}


def _assumed(system: System) -> Iterator[tuple[str, str]]:
    """Signs and relations of the coefficients, in words and as conditions; what is proved holds where they do."""
    for name, kind in system.coefficients.items():
        sign = _SIGNS.get(system.assumptions.sign(name))
        if sign is not None and kind is not Kind.MATRIX:
            yield f"{name} {sign}", f"{letter(name)} {sign}"
    for relation in system.assumptions.relations:
        lower, upper = (javascript(public(system.algebra.normal(side))) for side in (relation.lower, relation.upper))
        yield str(relation), f"({lower}) {'<' if relation.strict else '<='} ({upper})"


# ---------------------------------------------------------------------- rates and modes
def _kinetics(system: System) -> dict[str, Any]:
    """Rates on constant states, and P(lam) there."""
    kinetics = system_kinetics(system)
    slopes = kinetics.matrix.replace(sp.sign, lambda x: 2 * sp.Heaviside(x) - 1)  # none where it jumps
    matrix = [[javascript(public(entry)) for entry in row] for row in slopes.tolist()]
    return {"rates": [javascript(public(rate)) for rate in kinetics.rates], "matrix": matrix,
            "linear": kinetics.is_linear}  # fmt: skip


def _steady(system: System) -> dict[str, Any]:
    """Constant steady states in closed form, each with the conditions under which it is real."""
    found = steady_states(system)
    states = [
        {
            "values": [javascript(value) for value in state.values.values()],
            "conditions": [javascript(public(condition)) for condition in state.conditions],
            "words": str(state),
        }
        for state in found
        if not state.free
    ]
    return {"states": states, "complete": found.is_complete, "note": found.reason, "assumes": found.assumes}


# ---------------------------------------------------------------------- one linear field
def _response(system: System) -> dict[str, Any]:
    """p, q, and the gain of a run: exact in T, by a method in `full` steps of tau and one of `rest`."""
    system.require_single()
    p, q = public(system.generator_symbol), public(system.source_symbol)
    runs = {name: javascript(_gain(p, q, _steps_of(p, name))) for name in page_methods()}
    return {"symbol": javascript(p), "source": javascript(q), "words": f"p(λ) = {p}".replace(lam.name, "λ"),
            "exact": javascript(system.response()), "methods": runs}  # fmt: skip


def _steps_of(p: sp.Expr, method: str) -> sp.Expr:
    factor = tableau(method).factor
    return factor(public(tau) * p) ** FULL * factor(REST * p)


def _gain(p: sp.Expr, q: sp.Expr, factor: sp.Expr) -> sp.Expr:
    """factor + q (factor - 1)/p, the gain of p h + q h(0) after steps that multiply by `factor`."""
    if q == 0:
        return factor
    if p == 0:
        return 1 + q * public(T)
    return sp.Piecewise((factor + q * (factor - 1) / p, sp.Ne(p, 0)), (1 + q * public(T), True))


def _classes(system: System) -> list[dict[str, Any]]:
    """Filter classes that exclude each other, with their conditions."""
    return [
        {"condition": javascript(c.condition), "kind": c.kind, "words": str(c).replace(lam.name, "λ"),
         "at": None if c.at is None else javascript(c.at)}
        for c in classify(system)
    ]  # fmt: skip


def _growth(system: System) -> dict[str, str]:
    rate = growth_rate(system)
    return {"rate": javascript(rate), "words": in_words(rate)}


# ---------------------------------------------------------------------- what a preflight rests on
def _existence(system: System, normalisation: str) -> list[dict[str, str]]:
    """The findings about existence and boxes, for all coefficients, end times and steps."""
    parts: Mapping[str, Callable[[RunSettings], Any]] = PARTS if system.is_single else FIELD_PARTS
    run = read_run(system, normalisation, 1, "euler", 1, None, None)
    found = parts["existence"](run)
    return [{"topic": f.topic, "status": f.outcome, "text": f.text, "reason": f.reason} for f in found]


def _steps(system: System, normalisation: str) -> dict[str, Any]:
    """For one field the limits of every method, one that holds near equal states followed by one for all states.

    For several fields `rate`, a bound K of the rates of the field: a step of at most 1/K resolves them.
    """
    if not system.is_single:
        bound = rate_bound(system, normalisation)
        if not bound.is_finite:
            raise Undecided("no bound of the slopes is known, and so no step limit")
        return {
            "rate": javascript(public(bound.value)),
            "words": in_words(public(bound.value), 1),
            "local": bound.is_local,
        }
    return {"limits": {method: list(_limits(system, method, normalisation)) for method in page_methods()}}


def _limits(system: System, method: str, normalisation: str) -> Iterator[dict[str, Any]]:
    for everywhere in (False, True):
        limit = step_limit(system, method, normalisation, everywhere=everywhere)
        yield {
            "value": None if limit.value is None else javascript(limit.value),
            "words": "" if limit.value is None else in_words(limit.value, -1),
            "rate": None if limit.rate is None else javascript(limit.rate),
            "means": limit.reason, "keeps": limit.keeps, "sharp": limit.is_sharp, "assumes": limit.assumes,
        }  # fmt: skip
        if limit.keeps not in ("linearised", "equal slopes"):
            return

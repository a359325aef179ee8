"""Formulas of the symbolic core in Chromium and in Python, to 1e-9."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import mpmath
import pytest
import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import public
from rdgraph.reals.budget import limited
from rdgraph.systems.catalogue import catalogue
from rdgraph.theory.filters import classify, growth_rate
from rdgraph.theory.patterns.kinetics import system_kinetics
from rdgraph.theory.patterns.steady_states import steady_states
from rdgraph.theory.step_limits import step_limit
from rdgraph.vocabulary.functions import FUNCTIONS, relu, sigmoid, softplus
from studies.explorer.equation_bundle import page_methods
from studies.explorer.javascript_source import function_body, javascript
from tests.studies.runs.test_browser import Browser

x, y = sp.symbols("x y")
#: Every rule of the printer, in x and y.
SHAPES = [
    y / x**2, -(x**3) / 7, (x + y) ** -3, x**7 - x**-2, sp.sqrt(x + y) / sp.sqrt(x), x ** sp.Rational(1, 3),
    sp.E * x**y, sp.pi - sp.Float("0.1") * x, sp.exp(-x) * sp.log(1 + y), sp.Max(x, y, sp.Rational(1, 2)),
    sp.Min(x - y, 0), sp.Abs(x - y) + sp.sign(x - y), sp.Heaviside(x - y), relu(x - y), sigmoid(x), softplus(x - 3),
    sp.tanh(x) * sp.sin(y), sp.cosh(x) - sp.sinh(y) + sp.cos(x), sp.floor(3 * x) + sp.ceiling(y),
    sp.atan(x) + sp.asinh(y), sp.Piecewise((x**2, (x > y) & (y > 0)), (-y, sp.Or(x < 1, sp.Ne(y, 2))), (x, True)),
    sp.Piecewise((1, sp.Not(x > y)), (2, True)), sp.Piecewise((sp.oo, x > 100), (x, True)),
]  # fmt: skip


def core_formulas() -> Iterator[sp.Expr]:
    """Rates, linearisations, symbols, responses, growth, steady states and step limits of the catalogue."""
    for system in catalogue.values():
        try:
            kinetics = system_kinetics(system)
            yield from (public(e) for e in (*kinetics.rates, *kinetics.matrix))
        except NotApplicable:
            pass
        if system.is_single and system.has_response:
            runs = [(3, sp.Rational(1, 2)), (sp.Rational(1, 3), sp.Rational(1, 4)), (2, 2), (sp.Rational(5, 2), 1)]
            yield from (system.response(T, method, step) for method in page_methods() for T, step in runs)
            yield system.response()
    yield from catalogue["BS-inhibited"].response(2)
    for name in ("BS", "FB*"):
        yield growth_rate(name)
        yield from (c.at for c in classify(name) if c.at is not None)
        yield from (step_limit(name, method).value for method in ("euler", "rk4"))
    for name in ("Schnakenberg", "Gray-Scott", "AC"):
        yield from (value for state in limited(5, steady_states, catalogue[name]) for value in state.values.values())


def core() -> list[sp.Expr]:
    return list(dict.fromkeys(e for e in core_formulas() if e.free_symbols))


def close(theirs: float | None, ours: mpmath.mpf) -> bool:
    return theirs is not None and abs(theirs - ours) <= 1e-9 * max(1, abs(ours))


def test_every_rule_of_the_printer(opened: Browser) -> None:
    assert compare(opened, SHAPES) == len(SHAPES)


@pytest.mark.slow
def test_two_hundred_formulas_of_the_core_have_the_same_values(opened: Browser) -> None:
    assert compare(opened, core()) >= 200


def compare(browser: Browser, formulas: list[sp.Expr]) -> int:
    """Values at two random points in Chromium and in mpmath; returns how many formulas were compared."""
    rng = random.Random(5)
    rows, expected = [], []
    for formula in formulas:
        names = sorted(s.name for s in formula.free_symbols)
        evaluated = sp.lambdify([sp.Symbol(n) for n in names], formula, [{"relu": lambda v: mpmath.mpf(max(v, 0)),
            "sigmoid": lambda v: 1 / (1 + mpmath.exp(-v)), "softplus": lambda v: mpmath.log1p(mpmath.exp(v)),
            "Heaviside": lambda v, *_: mpmath.mpf(v > 0)}, "mpmath"])  # fmt: skip
        for _ in range(2):
            point = [rng.uniform(0.1, 2.0) for _ in names]
            value = evaluated(*map(mpmath.mpf, point))
            if isinstance(value, int | mpmath.mpf) and mpmath.isfinite(value):
                rows.append([javascript(formula), names, dict(zip(names, point, strict=True))])
                expected.append((formula, point, value))
    got = browser.evaluate(f"{json.dumps(rows)}.map(([formula, names, at]) => evaluator([formula], names)(at)[0])")
    wrong = [(f, p, a, v) for a, (f, p, v) in zip(got, expected, strict=True) if not close(a, v)]
    assert wrong == []
    return len({row[0] for row in rows})


def test_the_functions_of_the_language_are_those_of_their_records(opened: Browser) -> None:
    points = [0.0, 1e-3, 0.5, 3.0, 30.0]
    for name in FUNCTIONS:
        signed = points if name == "sqrt" else [-p for p in points] + points
        got = opened.evaluate(f"{json.dumps(signed)}.map(FUNCTIONS.f_{name})")
        assert got == pytest.approx([float(FUNCTIONS[name].numpy(p)) for p in signed], rel=1e-12, abs=1e-15)


def test_what_the_page_cannot_evaluate_is_refused() -> None:
    for formula in (sp.LambertW(x), sp.erf(x), sp.Integral(x, x)):
        with pytest.raises(NotApplicable, match="expected a f"):
            javascript(formula)
    assert function_body("sigmoid") == "1/(1 + Math.exp(-x))"

"""`standard_form`: one form for equal functions, on which every question is decided.

A product of functions becomes a fraction in the generators of `function_field`, in which equal functions are equal, and
the fraction is written in the functions with the most known facts:

- sums of sines and cosines in place of their products and powers: cos(H)**2 is cos(2*H)/2 + 1/2;
- powers of tanh or sigmoid, times exponentials, in place of fractions of exponentials: tanh where the exponent is an
  even multiple, as in (exp(2*H) - 1)/(exp(2*H) + 1), else sigmoid;
- relu(p) in place of (p + abs(p))/2, abs(p) in place of sqrt(p**2), and tanh(abs(H)) in place of abs(tanh(H)).

Each step is linear, so it works term by term. A term without such a form, or with a form of another domain, stays
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.normal_form import Act, Algebra, Mix
from rdgraph.reals.polynomials import factors
from rdgraph.reals.regions import defining_conditions
from rdgraph.systems.canonical.function_field import FunctionField, ordered
from rdgraph.systems.canonical.function_identities import generated, outermost
from rdgraph.vocabulary.functions import BUILT_IN, Monotone, record_of, relu, sigmoid, softplus

#: Higher powers of sines and cosines, and longer products of functions, stay as they are.
MAX_TURNS, MAX_FACTORS, MAX_TERMS = 12, 12, 60

_KNOWN: tuple[Any, ...] = tuple(function.sympy for function in BUILT_IN if isinstance(function.sympy, type))


class _NotPresented(Exception):
    """A term has no such form. Never leaves this module."""


def standard_form(normal: sp.Expr, algebra: Algebra) -> sp.Expr:
    """A normal form with all functions in standard form, also under operators and inside other functions.

    >>> from rdgraph.systems.parser import parse
    >>> for text in ("beta*cos(H)**2", "A@(1/(1 + exp(-H)))", "(H + abs(H))/2 + L@H", "tanh(sin(H)*cos(H))", "H**3"):
    ...     system = parse(text)
    ...     print(standard_form(system.algebra.normal(system.expression), system.algebra))
    beta*cos(2*H)/2 + beta/2
    A@sigmoid(H)
    3*H/2 + Abs(H)/2 - A@H
    2*sigmoid(sin(2*H)) - 1
    H**3
    """
    normal = _without_squares(normal)
    if not normal.has(*_KNOWN):
        return normal
    return _with_moduli_inside(_with_relu(_in_moduli(normal, algebra), algebra))


def _in_moduli(normal: sp.Expr, algebra: Algebra) -> sp.Expr:
    """The standard form without relu, which is a sum of two terms."""
    inner = {atom for atom in outermost(normal) if atom.inner.has(*_KNOWN)}
    spread = normal.xreplace({atom: algebra.applied(atom, _in_moduli(atom.inner, algebra)) for atom in inner})
    return sp.Add(*(_term(term, algebra) for term in sp.Add.make_args(_spread(spread))))


def _term(term: sp.Expr, algebra: Algebra) -> sp.Expr:
    """A product with its functions in standard form; other factors are kept apart."""
    factors = [f.xreplace(_presented_arguments(f, algebra)) for f in sp.Mul.make_args(term)]
    moving = [f for f in factors if _has_function(f)]
    if not moving or len(moving) > MAX_FACTORS:
        return sp.Mul(*factors)
    product = sp.Mul(*moving)
    letters: dict[sp.Expr, sp.Dummy] = {}
    plain = _in_letters(product, letters)
    try:
        form = _presented(plain, algebra).xreplace({letter: part for part, letter in letters.items()})
    except (_NotPresented, NotApplicable, sp.PolynomialError):
        return sp.Mul(*factors)
    if set(defining_conditions(form)) != set(defining_conditions(product)):
        return sp.Mul(*factors)
    return _spread(sp.Mul(form, *(f for f in factors if f not in moving)))


def _spread(expression: sp.Expr) -> sp.Expr:
    """The expression multiplied out, with one exponential per term."""
    terms = sp.Add.make_args(sp.expand(expression, power_base=False, power_exp=False, log=False, func=False))
    return sp.Add(*(_with_one_exponential(term) for term in terms))


def _with_one_exponential(product: sp.Expr) -> sp.Expr:
    """exp(u)*exp(v) as exp(u + v), which sympy does not merge."""
    factors = sp.Mul.make_args(product)
    exponentials = [factor for factor in factors if isinstance(factor, sp.exp)]
    if len(exponentials) < 2:
        return product
    return sp.exp(sp.Add(*(f.args[0] for f in exponentials))) * sp.Mul(*(f for f in factors if f not in exponentials))


def _has_function(factor: sp.Expr) -> bool:
    """Whether a factor contains a function of the language outside of operators and matrices."""
    return factor.xreplace(dict.fromkeys(outermost(factor), sp.Dummy("x"))).has(*_KNOWN)


def _calls(expression: sp.Basic) -> Iterator[sp.Expr]:
    """The functions outside of other functions, operators and matrices."""
    if isinstance(expression, sp.Function):
        yield expression
    elif not isinstance(expression, Act | Mix):
        for part in expression.args:
            yield from _calls(part)


def _presented_arguments(factor: sp.Expr, algebra: Algebra) -> dict[sp.Expr, sp.Expr]:
    """Nested functions, with their arguments in standard form."""
    nested = [call for call in _calls(factor) if len(call.args) == 1 and call.args[0].has(*_KNOWN)]
    return {call: _modulus_outside(call.func(standard_form(_spread(call.args[0]), algebra))) for call in nested}


def _in_letters(expression: sp.Expr, letters: dict[sp.Expr, sp.Dummy]) -> sp.Expr:
    """The expression with operators, other functions and nested functions as symbols."""

    def letter(part: sp.Expr) -> sp.Dummy:
        return letters.setdefault(part, sp.Dummy(str(part), real=True))

    def hidden(call: sp.Expr) -> sp.Expr:
        if not isinstance(call, _KNOWN):
            return letter(call)
        parts = (*outermost(call.args[0]), *_calls(call.args[0]))
        is_power = isinstance(call, sp.exp)  # exp(softplus(u)) = 1 + exp(u)
        inside = {part: hidden(part) if is_power and isinstance(part, softplus) else letter(part) for part in parts}
        return call.func(call.args[0].xreplace(inside))

    held = {call: hidden(call) for call in set(_calls(expression))}
    return expression.xreplace(held | {atom: letter(atom) for atom in set(outermost(expression)) - set(held)})


def _presented(product: sp.Expr, algebra: Algebra) -> sp.Expr:
    field, top, bottom = generated(product, algebra)
    if len(sp.Add.make_args(top)) > MAX_TERMS:
        raise _NotPresented
    return _spread(field.resolve(sp.expand(_turned(_exponentials(top, bottom, field), field))))


# ---------------------------------------------------------------------- sines and cosines
def _turned(expression: sp.Expr, field: FunctionField) -> sp.Expr:
    """Products of sines and cosines as sums."""
    angles = ordered(g for g in expression.free_symbols if _function(g, field) in (sp.cos, sp.sin))
    if not angles:
        return expression
    terms = sp.Poly(expression, *angles).terms()
    return sp.Add(*(c * _wave(dict(zip(angles, powers, strict=True)), field) for powers, c in terms))


def _wave(powers: dict[sp.Dummy, int], field: FunctionField) -> sp.Expr:
    """A product of powers of sines and cosines as a sum, by the coefficients of its exponentials."""
    if sum(powers.values()) > MAX_TURNS:
        raise _NotPresented
    waves: dict[sp.Expr, sp.Expr] = {sp.S.Zero: sp.S.One}
    for g, power in powers.items():
        angle = field.generators[g].argument
        step = -sp.I / 2 if _function(g, field) is sp.sin else sp.S.Half
        for _ in range(power):
            further: dict[sp.Expr, sp.Expr] = {}
            for frequency, c in waves.items():
                further[frequency + angle] = further.get(frequency + angle, sp.S.Zero) + c * step
                further[frequency - angle] = further.get(frequency - angle, sp.S.Zero) + c * step.conjugate()
            waves = further
    return sp.Add(*(sp.re(c) * sp.cos(frequency) - sp.im(c) * sp.sin(frequency) for frequency, c in waves.items()))


def _function(letter: sp.Basic, field: FunctionField) -> Any:
    generator = field.generators.get(letter)  # type: ignore[call-overload]
    return None if generator is None else generator.function


def in_trigonometric_factors(expression: sp.Expr) -> sp.Expr:
    """A sum of sines and cosines as a product, in which zeros are simple that touch zero in the sum; others unchanged.

    >>> x = sp.Symbol("x", real=True)
    >>> in_trigonometric_factors(sp.cos(2 * x) + 1), in_trigonometric_factors(1 - sp.cos(x) + sp.tanh(x))
    (2*cos(x)**2, -cos(x) + tanh(x) + 1)
    """
    if expression.atoms(sp.Function) != expression.atoms(sp.sin, sp.cos) or not expression.has(sp.sin, sp.cos):
        return expression
    try:
        field, top, bottom = generated(expression, Algebra({}, {}, {}))
        number, factors = sp.factor_list(top, *ordered(top.free_symbols))
    except (NotApplicable, sp.PolynomialError):
        return expression
    if bottom.free_symbols:
        return expression
    return sp.Mul(number / bottom, *(_halved(factor, field) ** power for factor, power in factors))


def _halved(factor: sp.Expr, field: FunctionField) -> sp.Expr:
    """cos(u) + 1 as 2*cos(u/2)**2 and cos(u) - 1 as -2*sin(u/2)**2, sin(u) being cos(u - pi/2); others as they are."""
    for g in factor.free_symbols:
        if (end := factor - g) in (1, -1) and _function(g, field) in (sp.sin, sp.cos):
            turn = sp.pi / 2 if _function(g, field) is sp.sin else sp.S.Zero
            half = (field.resolve(field.generators[g].argument) - turn) / 2
            return 2 * sp.cos(half) ** 2 if end == 1 else -2 * sp.sin(half) ** 2
    return field.resolve(factor)


# ---------------------------------------------------------------------- exponentials
#: An exponential prod E**n of symbols E, by their exponents.
_Exponents = dict[sp.Dummy, int]


def _exponentials(top: sp.Expr, bottom: sp.Expr, field: FunctionField) -> sp.Expr:
    """A fraction in exponentials as a sum of powers of them and of tanh or sigmoid.

    The denominator has to be a product of factors X + Y with exponentials X and Y, as tanh and sigmoid have them.
    """
    if not bottom.free_symbols:
        return top / bottom
    letters = ordered(g for g in top.free_symbols | bottom.free_symbols if _function(g, field) is sp.exp)
    letters.sort(key=lambda g: field.generators[g].argument.is_number)  # type: ignore[index]
    top, bottom, arguments = _coarser(top, bottom, {g: field.generators[g].argument for g in letters})  # type: ignore[index]
    content, factors = sp.factor_list(bottom, *ordered(bottom.free_symbols))
    top /= content
    ratios: list[tuple[_Exponents, int]] = []
    for factor, power in factors:
        ratio, front = _ratio(factor, arguments)
        top *= front**-power
        ratios += [(ratio, power)] if ratio else []
    units: dict[sp.Dummy, list[tuple[int, int]]] = {}
    while ratios:
        unit, top, ratios = _with_unit(top, ratios, arguments, units)
        units[unit] = [(ratio[unit], power) for ratio, power in ratios if set(ratio) == {unit}]
        ratios = [(ratio, power) for ratio, power in ratios if set(ratio) != {unit}]
    for unit, shares in units.items():
        top = _spread(_apart(_spread(top), unit, arguments[unit], shares))
    return top.xreplace({letter: sp.exp(u) for letter, u in arguments.items()})


def _coarser(
    top: sp.Expr, bottom: sp.Expr, arguments: dict[sp.Dummy, sp.Expr]
) -> tuple[sp.Expr, sp.Expr, dict[sp.Dummy, sp.Expr]]:
    """The fraction in the largest units: exp(6*H) + exp(3*H) in powers of exp(3*H)."""
    coarse: dict[sp.Dummy, sp.Expr] = {}
    for letter, u in arguments.items():
        powers = [n for part in (top, bottom) for (n,) in sp.Poly(part, letter).monoms()]
        common = gcd(*powers)
        unit = letter if common < 2 else sp.Dummy(letter.name, positive=True)
        back = {letter**n: unit ** (n // common) for n in powers if common > 1 and n}
        top, bottom, coarse[unit] = top.xreplace(back), bottom.xreplace(back), max(common, 1) * u
    return top, bottom, coarse


def _ratio(factor: sp.Expr, arguments: dict[sp.Dummy, sp.Expr]) -> tuple[_Exponents, sp.Expr]:
    """X/Y and Y of a factor X + Y, the first exponent positive; no ratio for a single exponential."""
    if not factor.free_symbols <= set(arguments):
        raise _NotPresented
    letters = [letter for letter in arguments if factor.has(letter)]
    terms = sp.Poly(factor, *letters).terms()
    if len(terms) == 1 and terms[0][1] == 1:
        return {}, factor
    if len(terms) != 2 or any(c != 1 for _, c in terms):
        raise _NotPresented
    (first, _), (second, _) = terms
    differences = {x: a - b for x, a, b in zip(letters, first, second, strict=True) if a != b}
    if next(iter(differences.values())) < 0:
        differences, second = {x: -n for x, n in differences.items()}, first
    return differences, sp.Mul(*(x**n for x, n in zip(letters, second, strict=True)))


def _with_unit(
    top: sp.Expr, ratios: list[tuple[_Exponents, int]], arguments: dict[sp.Dummy, sp.Expr], units: dict[sp.Dummy, Any]
) -> tuple[sp.Dummy, sp.Expr, list[tuple[_Exponents, int]]]:
    """A symbol of which the first ratio is a power, substituted for one of the symbols in it."""
    ratio = ratios[0][0]
    common = gcd(*ratio.values())
    steps = {x: n // common for x, n in ratio.items()}
    free = [x for x, n in steps.items() if abs(n) == 1 and x not in units]
    if not free:
        raise _NotPresented
    if len(steps) == 1:
        return free[0], top, ratios
    gone, unit = free[-1], sp.Dummy("unit", positive=True)
    arguments[unit] = sp.Add(*(n * arguments[x] for x, n in steps.items()))
    others = {x: -n for x, n in steps.items() if x is not gone}
    written = (unit * sp.Mul(*(x**n for x, n in others.items()))) ** steps[gone]
    changed = []
    for exponents, power in ratios:
        turns = exponents.get(gone, 0) * steps[gone]
        sums = {x: exponents.get(x, 0) + turns * others.get(x, 0) for x in (*exponents, *others) if x is not gone}
        changed.append(({x: n for x, n in (sums | {unit: turns}).items() if n}, power))
    if any(ratio.get(unit, 1) < 0 for ratio, _ in changed):
        raise _NotPresented
    return unit, sp.expand(top.xreplace({gone: written})), changed


def _apart(top: sp.Expr, unit: sp.Dummy, u: sp.Expr, shares: list[tuple[int, int]]) -> sp.Expr:
    """top/prod (X**k + 1)**m in partial fractions, X = exp(u)."""
    low = min(0, *(term.as_coeff_exponent(unit)[1] for term in sp.Add.make_args(top)))
    powers = [(unit**k + 1, m) for k, m in shares] + ([(unit, -low)] if low else [])
    whole = sp.Poly(sp.Mul(*(base**m for base, m in powers)), unit)
    quotient, rest = sp.div(sp.Poly(sp.expand(top * unit**-low), unit), whole)
    total = sum((c * sp.exp(n * u) for (n,), c in quotient.terms()), sp.S.Zero)
    for base, m in powers:
        share = sp.Poly(base**m, unit)
        inverse = sp.invert(sp.quo(whole, share), share)
        digits = sp.rem(rest * inverse, share)
        for power in range(m, 0, -1):
            digits, digit = sp.div(digits, sp.Poly(base, unit))
            total += sum((c * _share(base, unit, u, n, power) for (n,), c in digit.terms()), sp.S.Zero)
    return sp.sympify(total)


def _share(base: sp.Expr, unit: sp.Dummy, u: sp.Expr, n: int, power: int) -> sp.Expr:
    """X**n/base**power, base being X or X**k + 1, in tanh, sigmoid and exponentials."""
    if base == unit:
        return sp.exp((n - power) * u)
    turns = sp.degree(base, unit) * u
    if n:
        return sp.exp(n * u) / (sp.exp(turns) + 1) ** power
    number = sp.expand(turns).primitive()[0]
    fall = (1 - sp.tanh(turns / 2)) / 2 if number.is_Integer and number % 2 == 0 else 1 - sigmoid(turns)
    return fall**power


# ---------------------------------------------------------------------- absolute values
def _without_squares(normal: sp.Expr) -> sp.Expr:
    """abs(p)**n in place of roots of p**(2*n), p a polynomial in the state, operators and functions."""

    def is_root(part: sp.Basic) -> bool:
        return isinstance(part, sp.Pow) and part.exp.is_Rational and part.exp.q == 2 and part.base.is_Add

    def rootless(power: sp.Pow) -> sp.Expr:
        letters: dict[sp.Expr, sp.Dummy] = {}
        base = _in_letters(power.base, letters)
        if not base.is_polynomial(*base.free_symbols):
            return power
        try:
            squares = factors(base)
        except Undecided:
            return power
        number = sp.cancel(base / sp.Mul(*(p**n for p, n in squares)))
        if not number.is_positive or any(n % 2 for _, n in squares):
            return power
        product = sp.Mul(number**power.exp, *(sp.Abs(p) ** (n * power.exp) for p, n in squares))
        return product.xreplace({letter: part for part, letter in letters.items()})

    return normal.replace(is_root, rootless) if any(map(is_root, normal.atoms(sp.Pow))) else normal


def _is_odd_and_rising(call: sp.Basic) -> bool:
    """Whether a call is one of a function like tanh, whose modulus is its value at the modulus."""
    record = record_of(call)
    if record is None or record.monotone is not Monotone.INCREASING or record.at_zero != 0 or not record.reflection:
        return False
    x, y = sp.symbols("x y")
    return bool(record.reflection(x, y) == -y)


def _modulus_outside(call: sp.Expr) -> sp.Expr:
    """abs(tanh(u)) in place of tanh(abs(u)), as long as moduli are compared."""
    inner = call.args[0]
    return sp.Abs(call.func(*inner.args)) if isinstance(inner, sp.Abs) and _is_odd_and_rising(call) else call


def _with_moduli_inside(total: sp.Expr) -> sp.Expr:
    """tanh(abs(u)) in place of abs(tanh(u)), whose slopes are known more closely; the same for relu."""
    return total.replace(
        lambda part: isinstance(part, sp.Abs | relu) and _is_odd_and_rising(part.args[0]),
        lambda part: part.args[0].func(part.func(*part.args[0].args)),
    )


def _with_relu(total: sp.Expr, algebra: Algebra) -> sp.Expr:
    """q*p + q*abs(p) as 2*q*relu(p), under operators and matrices too, where that makes the sum shorter."""
    if not total.has(sp.Abs):
        return total
    for term in sorted(sp.Add.make_args(total), key=str):
        moduli = list(_moduli(term))
        if len(moduli) != 1:
            continue
        p, rest = moduli[0].args[0], total - term
        for side in (p, -p):
            shorter = rest - _replaced(term, moduli[0], side, algebra)
            if _length(shorter) < _length(rest):
                total = shorter + 2 * _replaced(term, moduli[0], relu(side), algebra)
                break
    return total


def _length(total: sp.Expr) -> int:
    return 0 if total == 0 else len(sp.Add.make_args(total))


def _moduli(product: sp.Expr) -> Iterator[sp.Expr]:
    """The absolute values in which a product is linear."""
    for factor in sp.Mul.make_args(product):
        if isinstance(factor, sp.Abs):
            yield factor
        elif isinstance(factor, Act | Mix):
            yield from _moduli(factor.inner)


def _replaced(product: sp.Expr, modulus: sp.Expr, value: sp.Expr, algebra: Algebra) -> sp.Expr:
    """A product with one factor replaced, multiplied out."""
    changed = []
    for factor in sp.Mul.make_args(product):
        if isinstance(factor, Act | Mix) and modulus in _moduli(factor):
            changed.append(algebra.applied(factor, _replaced(factor.inner, modulus, value, algebra)))
        else:
            changed.append(value if factor == modulus else factor)
    return _spread(sp.Mul(*changed))

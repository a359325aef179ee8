"""User-defined functions: `register_function` makes a record of a definition and checks the given facts.

A definition in the language, such as `x/(1 + exp(-x))`, is an abbreviation, which proofs expand. A definition with
other functions, such as `x*(1 + erf(x/sqrt(2)))/2`, is not expanded: only the given facts about its values and slopes
are known, and answers that need more are undecided.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from flint import arb, ctx

from rdgraph.errors import InvalidArgument, LanguageError
from rdgraph.language import formula_reader
from rdgraph.language.formula_reader import FormulaFunction, formula_class
from rdgraph.language.normal_form import Algebra, H
from rdgraph.language.printer import upright
from rdgraph.language.reader import USUAL_COEFFICIENTS, Vocabulary, check_new_name, read_expression
from rdgraph.language.tree import Kind, Name, kind_of
from rdgraph.language.unfolding import ARGUMENT
from rdgraph.reals.domain import Domain
from rdgraph.reals.enclosure import NotEnclosed, enclose, enclose_function, holds
from rdgraph.theory.equality import dense_oracle, exact_values
from rdgraph.theory.equality.exact_values import Undefined, array
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.functions import FUNCTIONS, ElementwiseFunction, Monotone, Span, record_of

# ---------------------------------------------------------------------- function definitions
# User-defined functions: trees of the language, or formulas that are smooth on all reals.

#: Smooth functions on all reals or with a proof of definedness; kinks can be written in the language alone.
_SMOOTH = (sp.log, sp.atan, sp.asinh, sp.sinh, sp.cosh, sp.erf)


def read_definition(definition: str | sp.Expr) -> tuple[sp.Basic | None, sp.Expr]:
    """The tree of a definition in the language, or None, and its formula in H.

    >>> read_definition("x**2")[1], read_definition("x*erf(x)")
    (H**2, (None, H*erf(H)))
    """
    if isinstance(definition, sp.Expr):
        if len(definition.free_symbols) != 1:
            raise InvalidArgument(f"expected a definition in one symbol, got {definition}")
        letter = str(next(iter(definition.free_symbols)))
        text = sp.sstr(definition).replace("Abs(", "abs(")
    elif isinstance(definition, str):
        text, letter = definition, "x" if re.search(r"\bx\b", definition) else "H"
    else:
        raise InvalidArgument(f"expected a definition as text or sympy expression, got {type(definition).__name__}")
    try:
        tree = read_expression(text, Vocabulary({letter: Kind.FIELD}))
    except LanguageError:
        formula = definition if isinstance(definition, sp.Expr) else formula_reader.read_expression(text)
        return None, _total(formula, letter)
    if kind_of(tree) is not Kind.FIELD:
        raise InvalidArgument(f"expected a definition in x, got {text!r:.60}, which does not depend on x")
    tree = tree.xreplace({Name(letter, Kind.FIELD): ARGUMENT})
    return tree, Algebra({"H": H}, {"H": Kind.FIELD}).normal(tree)


def _total(formula: sp.Basic, letter: str) -> sp.Expr:
    """A formula in H that is proved to be smooth on all reals; raises InvalidArgument for others."""
    names = sorted(x.name for x in formula.free_symbols)
    if not isinstance(formula, sp.Expr) or names != [letter]:
        raise InvalidArgument(f"expected a definition in {letter} alone, got one in {', '.join(names) or 'no symbol'}")
    plain = formula.xreplace(dict.fromkeys(formula.free_symbols, H))
    for part in sp.preorder_traversal(plain):
        if not _is_smooth(part):
            raise InvalidArgument(
                f"expected a definition in smooth functions ({', '.join(k.__name__ for k in _SMOOTH)} and those of "
                f"the language), got {type(part).__name__}; write kinks in the language, as in relu(x)"
            )
        for need in _needs(part):
            if Domain().proves(need) is not True:
                raise InvalidArgument(
                    f"expected a definition that is smooth on all reals, got one for which {need} is not proved"
                )
    return plain


def _is_smooth(part: sp.Basic) -> bool:
    """Whether a part of a formula is a number, the letter, arithmetic or a smooth function."""
    if isinstance(part, sp.Rational | sp.NumberSymbol | sp.Add | sp.Mul | sp.Pow | sp.exp) or part == H:
        return True
    record = record_of(part)
    return part.func in _SMOOTH or (record is not None and record.pieces is None)


def _needs(part: sp.Basic) -> list[sp.Basic]:
    """The conditions for a power or a logarithm to be smooth."""
    match part:
        case sp.Pow() if part.exp.is_Integer:
            return [] if part.exp > 0 else [sp.Ne(part.base, 0, evaluate=False)]
        case sp.Pow():
            return [sp.Gt(part.base, 0, evaluate=False)]
        case sp.log():
            return [sp.Gt(part.args[0], 0, evaluate=False)]
    return []


# ---------------------------------------------------------------------- function facts
# The facts of a record, compared with the definition of the function at a few hundred points, with a proof at each.

#: Quarters up to 8, powers of two from 2**-12 to 64, and a few others, of either sign.
POINTS: tuple[sp.Rational, ...] = tuple(
    sorted(
        {sign * x for sign in (1, -1) for x in (
            *(sp.Rational(k, 4) for k in range(33)), *(sp.Rational(2) ** k for k in range(-12, 7)),
            *(sp.Rational(k, 7) for k in range(1, 50)), sp.Rational(12), sp.Rational(20), sp.Rational(33),
        )}
    )
)  # fmt: skip
BITS = 128
TOLERANCE = 1e-9
#: Accurate bits that a value needs to be compared with its neighbour.
ACCURATE = 20


def check_facts(function: ElementwiseFunction) -> None:
    """Raise InvalidArgument, with the point, where the values of a function contradict its record."""
    values = dict(_values(function))
    if not values:
        raise InvalidArgument(f"{function.name} is not defined at any of the points tried")
    _check_span(function, values, function.range, "f(x)")
    if function.slope is not None:
        slopes = dict(_slopes(function, values))
        if not slopes:
            raise InvalidArgument(f"the slope of {function.name} cannot be checked: no enclosure was found")
        _check_span(function, slopes, function.slope, "f'(x)")
    if function.monotone is not None:
        _check_order(function, function.monotone, values)
    _check_numpy(function, values)


def _values(function: ElementwiseFunction) -> Iterator[tuple[sp.Rational, Any]]:
    """Enclosures at the points where the function is defined."""
    before, ctx.prec = ctx.prec, BITS
    try:
        for point in POINTS:
            try:
                ball = arb(function.ball(array(point)))
            except (NotEnclosed, Undefined):
                continue
            if ball.is_finite():
                yield point, ball
    finally:
        ctx.prec = before


def _slopes(function: ElementwiseFunction, values: dict[sp.Rational, Any]) -> Iterator[tuple[sp.Rational, Any]]:
    """Enclosures of the derivative; for a function that is not expanded from its formula, not from its given slope."""
    x = sp.Dummy("x", real=True)
    derivative = sp.diff(function.formula(x), x) if function.formula is not None else function.derivative(x)
    for point in values:
        try:
            yield point, enclose(derivative.xreplace({x: point}), BITS)
        except NotEnclosed:
            continue


def _check_span(function: ElementwiseFunction, values: dict[sp.Rational, Any], span: Span | None, what: str) -> None:
    if span is None:
        return
    lower, upper = ((enclose(end, BITS) if end.is_finite else None) for end in (span.lower, span.upper))
    for point, ball in values.items():
        below = lower is not None and (ball < lower or (not span.has_lower and ball == lower))
        above = upper is not None and (ball > upper or (not span.has_upper and ball == upper))
        if below or above:
            raise InvalidArgument(
                f"expected {what} in {span} for {function.name}, got {_shown(ball)} at x = {point}; correct the fact"
            )


def _check_order(function: ElementwiseFunction, monotone: Monotone, values: dict[sp.Rational, Any]) -> None:
    rises = monotone in (Monotone.INCREASING, Monotone.NONDECREASING)
    known = [(point, ball) for point, ball in values.items() if ball.rel_accuracy_bits() >= ACCURATE]
    for (left, low), (right, high) in itertools.pairwise(known):
        step = high - low if rises else low - high
        if step < 0 or (function.is_injective and step == 0):
            raise InvalidArgument(
                f"expected {function.name} to be {monotone}, got f({left}) = {_shown(low)} and "
                f"f({right}) = {_shown(high)}; correct the fact"
            )


def _check_numpy(function: ElementwiseFunction, values: dict[sp.Rational, Any]) -> None:
    points = list(values)
    exact = np.array([float(ball.mid()) for ball in values.values()])
    with np.errstate(all="ignore"):
        computed = np.asarray(function.numpy(np.array([float(x) for x in points])), dtype=float)
    if computed.shape != exact.shape:
        raise InvalidArgument(f"expected numpy= to keep the shape {exact.shape}, got {computed.shape}")
    away = ~(np.abs(computed - exact) <= TOLERANCE * (1 + np.abs(exact)))
    if away.any():
        at = int(np.argmax(away))
        raise InvalidArgument(
            f"expected numpy= to agree with the definition of {function.name}, got {computed[at]:g} for "
            f"{exact[at]:g} at x = {points[at]}"
        )


def _shown(ball: Any) -> str:
    """A number as a short fraction if it is one, else as a decimal."""
    number = float(ball.mid())
    fraction = sp.nsimplify(number, rational=True)
    short = fraction.q <= 1000 and holds(sp.Eq(fraction, sp.Rational(number))) is True
    return str(fraction) if short else f"{number:.6g}"


# ---------------------------------------------------------------------- function registration
def register_function(
    name: str,
    definition: str | sp.Expr,
    *,
    numpy: Callable[[Any], Any] | None = None,
    torch: str | None = None,
    latex: str | None = None,
    range: tuple[Any, Any] | None = None,  # noqa: A002 - the word for it
    slope: tuple[Any, Any] | None = None,
    monotone: str | None = None,
) -> ElementwiseFunction:
    """Add y = f(x) to the functions of the language, until `unregister_function`.

    Args:
        name: the name in equations, which must be free and not a usual coefficient.
        definition: f(x) in x (or H): a text in the language, a text with further functions (erf, log,
            atan, asinh, sinh, cosh), or a sympy expression in one symbol.
        numpy: f on float arrays, for the dense evaluator; by default from the definition.
        torch: source text of f with {0} for the argument, in `torch` alone; by default from the definition.
        latex: text with {} for the argument.
        range: (lower, upper) bounds of all values; None or an infinite end for no bound.
        slope: (lower, upper) bounds of all values of f'.
        monotone: "increasing" or "decreasing" (strictly), "nondecreasing" or "nonincreasing".

    Returns:
        The record of the function.

    Raises:
        InvalidArgument: the definition contradicts a fact at some point, which is named; a definition outside of the
            language is not proved to be smooth on all reals; or the source is invalid.
        LanguageError: a definition or a name that cannot be parsed.

    Facts are compared with the definition at a few hundred points, with a proof at each; between these points they are
    trusted. Nothing is concluded from facts that are not given.

    >>> import rdgraph as rd
    >>> _ = rd.register_function("swish_example", "x/(1 + exp(-x))")
    >>> print(rd.parse("-alpha*L@H + beta*swish_example(H)").normal)
    -H*alpha + H*beta*sigmoid(H) + alpha*(A@H)
    >>> rd.register_function("half_example", "x/2", slope=(0, 0.25))
    Traceback (most recent call last):
        ...
    rdgraph.errors.InvalidArgument: expected f'(x) in [0, 1/4] for half_example, got 1/2 at x = -64; correct the fact
    >>> rd.vocabulary.unregister_function("swish_example")
    """
    _check_name(name)
    facts = _Facts(
        _span(range, "range"), _span(slope, "slope"), _monotone(monotone), numpy, _template(torch), _latex(name, latex)
    )
    tree, formula = read_definition(definition)
    record, slopes = (_abbreviation(name, tree, facts), None) if tree is not None else _closed(name, formula, facts)
    _check_meaning(name, record)
    check_facts(record)
    FUNCTIONS.add(record, _meaning(formula), slopes)
    return record


def unregister_function(name: str) -> None:
    """Remove a registered function from the language; in this process the name keeps its definition.

    Args:
        name: the name of a function of `register_function`.

    Raises:
        UnknownName: no function has this name.
        InvalidArgument: it is a built-in function.

    >>> import rdgraph as rd
    >>> _ = rd.register_function("cube_example", "x**3")
    >>> rd.vocabulary.unregister_function("cube_example")
    """
    FUNCTIONS.remove(name)


@dataclass(frozen=True)
class _Facts:
    """The given facts, in the form of the record."""

    range: Span | None
    slope: Span | None
    monotone: Monotone | None
    numpy: Callable[[Any], Any] | None
    torch: str | None
    latex: str


# ---------------------------------------------------------------------- arguments
def _check_name(name: str) -> None:
    check_new_name(name)
    if name in USUAL_COEFFICIENTS:
        raise InvalidArgument(f"{name!r} is a usual coefficient; call the function {name}_1")


def _check_meaning(name: str, record: ElementwiseFunction) -> None:
    """Raise InvalidArgument for a name that answers use with another meaning."""
    known = formula_reader.FURTHER.get(name)
    if known is not None and (record.formula is None or record.formula(H) != known(H)):
        raise InvalidArgument(f"{name!r} is already a function with another definition; call it {name}_1")


def _meaning(formula: sp.Expr) -> sp.Expr:
    """A canonical form of definitions: with all functions written out, and expanded."""
    return sp.expand(formula.replace(lambda e: isinstance(e, FormulaFunction), lambda e: e.formula(e.args[0])))


def _span(ends: tuple[Any, Any] | None, what: str) -> Span | None:
    if ends is None:
        return None
    given: Any = ends
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidArgument(f"expected {what} as (lower, upper), got {ends!r:.60}; None means no bound")
    lower, upper = (_end(end, infinite, what) for end, infinite in zip(ends, (-sp.oo, sp.oo), strict=True))
    if not lower <= upper:
        raise InvalidArgument(f"expected {what} as (lower, upper), got {ends!r:.60}; exchange them")
    return Span.of(lower, upper, attained=True)


def _end(end: Any, infinite: sp.Expr, what: str) -> sp.Expr:
    if end is None or end == infinite:
        return infinite
    number = exact_number(end, f"end of the {what}")
    if not number.is_number:
        raise InvalidArgument(f"expected a number as end of the {what}, got {number}; give 2, 0.5 or -sympy.oo")
    return number if number.is_Rational else _outward(number, 1 if infinite is sp.oo else -1)


def _outward(number: sp.Expr, way: int) -> sp.Rational:
    """A rational with six decimals just beyond a number, since rational ends keep all results exact."""
    scale = sp.Integer(10) ** 6
    return sp.Rational(way * sp.ceiling(way * number * scale), scale)


def _monotone(word: str | None) -> Monotone | None:
    if word is None:
        return None
    if word not in set(Monotone):
        raise InvalidArgument(f"expected monotone among {', '.join(Monotone)}, got {word!r}")
    return Monotone(word)


def _template(torch: str | None) -> str | None:
    """Source text with {0} for the argument: one expression in `torch` and the argument."""
    if torch is None:
        return None
    problem = ""
    try:
        text = torch.replace("{}", "{0}")
        names = {node.id for node in ast.walk(ast.parse(text.format("x"), mode="eval")) if isinstance(node, ast.Name)}
        if "x" not in names or names - {"x", "torch"}:
            problem = f"the names {', '.join(sorted(names))}"
    except (AttributeError, SyntaxError, ValueError, KeyError, IndexError) as reason:
        problem = str(reason)
    if problem:
        raise InvalidArgument(
            f"expected source in torch and the argument, as in 'torch.nn.functional.gelu({{0}})', got {problem}"
        )
    return f"({text})"


def _latex(name: str, latex: str | None) -> str:
    if latex is None:
        return upright(name)
    try:
        latex.format("x")
    except (AttributeError, ValueError, KeyError, IndexError) as reason:
        raise InvalidArgument(
            f"expected LaTeX with {{}} for the argument and doubled braces elsewhere, got {reason}"
        ) from None
    return latex


# ---------------------------------------------------------------------- records
def _abbreviation(name: str, tree: sp.Basic, facts: _Facts) -> ElementwiseFunction:
    formula = Algebra({"H": H}, {"H": Kind.FIELD}).normal(tree)
    slope = sp.diff(formula, H)
    return ElementwiseFunction(
        name, lambda u: formula.xreplace({H: u}), lambda u: slope.xreplace({H: u}), facts.latex,
        numpy=facts.numpy or partial(_dense, tree), torch=facts.torch, ball=partial(_exact, tree),
        range=facts.range, slope=facts.slope, monotone=facts.monotone, definition=tree, is_sharp=False,
    )  # fmt: skip


def _dense(tree: sp.Basic, x: Any) -> Any:
    return dense_oracle.evaluate(tree, {"H": x})


def _exact(tree: sp.Basic, x: Any) -> Any:
    return exact_values.evaluate(tree, {"H": x})


def _closed(name: str, formula: sp.Expr, facts: _Facts) -> tuple[ElementwiseFunction, ElementwiseFunction]:
    """A function and its slope, of which only the given facts are known."""
    derivative = sp.diff(formula, H)
    steep = _formula_record(f"{name}_slope", derivative, facts.slope, latex=upright(f"{name}'"))
    record = _formula_record(
        name, formula, facts.range, latex=facts.latex, slope=facts.slope, monotone=facts.monotone,
        numpy=facts.numpy, torch=facts.torch, derivative=steep.sympy,
    )  # fmt: skip
    return record, steep


def _formula_record(
    name: str,
    formula: sp.Expr,
    values: Span | None,
    *,
    latex: str,
    slope: Span | None = None,
    monotone: Monotone | None = None,
    numpy: Callable[[Any], Any] | None = None,
    torch: str | None = None,
    derivative: Any = None,
) -> ElementwiseFunction:
    kind = formula_class(name, sp.Lambda(H, formula), values, derivative)
    second = sp.diff(formula, H)
    return ElementwiseFunction(
        name, kind, derivative or (lambda u: second.xreplace({H: u})), latex,
        numpy=numpy or partial(_rounded, formula), torch=torch, ball=partial(_enclosed, formula),
        range=values, slope=slope, monotone=monotone, at_zero=formula.xreplace({H: sp.S.Zero}),
        formula=lambda u: formula.xreplace({H: u}), is_sharp=False,
    )  # fmt: skip


def _enclosed(formula: sp.Expr, x: Any) -> Any:
    """The value of the formula at a ball or a rational."""
    return enclose_function(formula, H, x)


def _rounded(formula: sp.Expr, x: Any) -> Any:
    """The values of the formula at every entry of an array, correctly rounded to doubles."""

    def value(entry: float) -> float:
        try:
            return float(enclose(formula.xreplace({H: sp.Rational(entry)})).mid())
        except NotEnclosed:
            return float("nan")

    return np.vectorize(value, otypes=[float])(x)

"""Functions of the user: `register_function` makes a record of a definition and of facts, which it checks.

A definition in the language, such as `x/(1 + exp(-x))`, is an abbreviation: proofs see what it stands for. One that
needs other functions, such as `x*(1 + erf(x/sqrt(2)))/2`, stays closed: of its values and slopes nothing is known but
the facts that are given, and answers that need more are undecided.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy as sp

from rdgraph.algebra.normal_form import Algebra, H
from rdgraph.decisions.enclosure import NotEnclosed, enclose, enclose_function
from rdgraph.errors import InvalidArgument
from rdgraph.identities import dense_oracle, exact_values
from rdgraph.identities.function_definitions import read_definition
from rdgraph.identities.function_facts import check_facts
from rdgraph.syntax import formula_reader
from rdgraph.syntax.exact_numbers import exact_number
from rdgraph.syntax.formula_functions import FormulaFunction, formula_class
from rdgraph.syntax.functions import FUNCTIONS, ElementwiseFunction, Monotone, Span
from rdgraph.syntax.printer import upright
from rdgraph.syntax.reader import USUAL_COEFFICIENTS, check_new_name
from rdgraph.syntax.tree import Kind


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
    """Make y = f(x) a function of the language, until `unregister_function`.

    Args:
        name: as equations call it; free, and not a usual coefficient.
        definition: f(x) in the letter x (or H): a text in the language, a text with further functions (erf, log,
            atan, asinh, sinh, cosh), or a sympy expression in one symbol.
        numpy: f on float arrays, for the dense evaluator; from the definition if left out.
        torch: source text of f with {0} for the argument, in `torch` alone; from the definition if left out.
        latex: text with {} for the argument.
        range: (lower, upper) around all values; None or an infinite end says nothing.
        slope: (lower, upper) around all values of f'.
        monotone: "increasing" or "decreasing" (strictly), "nondecreasing" or "nonincreasing".

    Returns:
        The record of the function.

    Raises:
        InvalidArgument: a fact that the definition contradicts at some point, which is named; a definition that is not
            proved to be smooth on all reals where it is not of the language; source that is none.
        LanguageError: a definition or a name that cannot be read.

    Facts are compared with the definition at a few hundred points, with proofs at each; between them they are taken
    on trust. A fact that is left out is unknown, and nothing is concluded from it.

    >>> import rdgraph as rd
    >>> _ = rd.register_function("swish_example", "x/(1 + exp(-x))")
    >>> print(rd.parse("-alpha*L@H + beta*swish_example(H)").normal)
    -H*alpha + H*beta/(1 + exp(-H)) + alpha*(A@H)
    >>> rd.register_function("half_example", "x/2", slope=(0, 0.25))
    Traceback (most recent call last):
        ...
    rdgraph.errors.InvalidArgument: expected f'(x) in [0, 1/4] for half_example, got 1/2 at x = -64; correct the fact
    >>> rd.unregister_function("swish_example")
    """
    _check_name(name)
    facts = _Facts(
        _span(range, "range"), _span(slope, "slope"), _monotone(monotone), numpy, _template(torch), _latex(name, latex)
    )
    tree, formula = read_definition(definition)
    made, slopes = (_abbreviation(name, tree, facts), None) if tree is not None else _closed(name, formula, facts)
    _check_meaning(name, made)
    check_facts(made)
    FUNCTIONS.add(made, _meaning(formula), slopes)
    return made


def unregister_function(name: str) -> None:
    """Take a registered function out of the language; the name stays bound to its definition in this process.

    Args:
        name: of a function that `register_function` has made.

    Raises:
        UnknownName: no function has this name.
        InvalidArgument: it is one of the functions that the language has from the start.

    >>> _ = register_function("cube_example", "x**3")
    >>> unregister_function("cube_example")
    """
    FUNCTIONS.remove(name)


@dataclass(frozen=True)
class _Facts:
    """What was given beside the definition, in the form of the record."""

    range: Span | None
    slope: Span | None
    monotone: Monotone | None
    numpy: Callable[[Any], Any] | None
    torch: str | None
    latex: str


# ---------------------------------------------------------------------- what was given
def _check_name(name: str) -> None:
    check_new_name(name)
    if name in USUAL_COEFFICIENTS:
        raise InvalidArgument(f"expected a free name, got {name!r}, a usual coefficient; call it {name}_1")


def _check_meaning(name: str, made: ElementwiseFunction) -> None:
    """A name that answers use already must keep its meaning there."""
    known = formula_reader.FURTHER.get(name)
    if known is not None and (made.formula is None or made.formula(H) != known(H)):
        raise InvalidArgument(f"expected a free name, got {name!r}, a function of another meaning; call it {name}_1")


def _meaning(formula: sp.Expr) -> sp.Expr:
    """One form for equal definitions: functions that are closed written out, and all expanded."""
    return sp.expand(formula.replace(lambda e: isinstance(e, FormulaFunction), lambda e: e.formula(e.args[0])))


def _span(ends: tuple[Any, Any] | None, what: str) -> Span | None:
    if ends is None:
        return None
    given: Any = ends
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidArgument(f"expected {what} as (lower, upper), got {ends!r:.60}; None stands for no bound")
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
    """A rational with six decimals just beyond a number: ends that are rational keep what follows from them exact."""
    scale = sp.Integer(10) ** 6
    return sp.Rational(way * sp.ceiling(way * number * scale), scale)


def _monotone(word: str | None) -> Monotone | None:
    if word is None:
        return None
    if word not in set(Monotone):
        raise InvalidArgument(f"expected monotone among {', '.join(Monotone)}, got {word!r}")
    return Monotone(word)


def _template(torch: str | None) -> str | None:
    """Source with {0} for the argument: one expression in the name `torch` and the argument."""
    if torch is None:
        return None
    problem = ""
    try:
        text = torch.replace("{}", "{0}")
        names = {node.id for node in ast.walk(ast.parse(text.format("x"), mode="eval")) if isinstance(node, ast.Name)}
        if "x" not in names or names - {"x", "torch"}:
            problem = f"the names {sorted(names)}"
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
    """A function and its slope, which are known by their facts alone."""
    derivative = sp.diff(formula, H)
    steep = _formula_record(f"{name}_slope", derivative, facts.slope, latex=upright(f"{name}'"))
    made = _formula_record(
        name, formula, facts.range, latex=facts.latex, slope=facts.slope, monotone=facts.monotone,
        numpy=facts.numpy, torch=facts.torch, derivative=steep.sympy,
    )  # fmt: skip
    return made, steep


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
    """The formula on a ball or a rational."""
    return enclose_function(formula, H, x)


def _rounded(formula: sp.Expr, x: Any) -> Any:
    """The formula on every entry of an array, to the last digit of a double."""
    import numpy as np

    def value(entry: float) -> float:
        try:
            return float(enclose(formula.xreplace({H: sp.Rational(entry)})).mid())
        except NotEnclosed:
            return float("nan")

    return np.vectorize(value, otypes=[float])(x)

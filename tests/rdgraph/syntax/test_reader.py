"""The language: round trips, refusals with place and remedy, typing rules, declarations, and texts made to exhaust."""

from __future__ import annotations

import gc
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rdgraph.errors import AssumptionError, LanguageError, NotApplicable, RdgraphError, UnknownName
from rdgraph.identities import dense_oracle as dense
from rdgraph.identities.function_identities import is_zero
from rdgraph.syntax.assumptions import Assumptions
from rdgraph.syntax.fold import TypeMismatch
from rdgraph.syntax.functions import FUNCTIONS
from rdgraph.syntax.printer import to_text
from rdgraph.syntax.reader import RESERVED, STRUCTURAL, USUAL_COEFFICIENTS, Vocabulary, read_expression
from rdgraph.syntax.tree import (
    Apply,
    Call,
    Kind,
    Minus,
    Name,
    Negative,
    Over,
    Plus,
    Power,
    Times,
    kind_of,
)
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.testing import adjacency, coefficient_values, expressions, graph_families, states, systems
from tests.paths import ROOT

#: Seconds of processor time within which every text must be read or refused.
QUICK = 1.0
STATE = sp.Symbol("H")


def quickly(action: Callable[[], Any]) -> Any:
    """The result of an action (or the error it raises on purpose), which may not take longer than QUICK."""

    def give_up(*_: Any) -> None:
        raise TimeoutError(f"still busy after {3 * QUICK} s")

    previous = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, 3 * QUICK)
    gc.disable()  # a pause of the collector is of all that the process holds
    start = time.process_time()
    try:
        result: Any = action()
    except RdgraphError as error:
        result = error
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
    assert time.process_time() - start < QUICK
    return result


def refusal(text: Any, coefficients: Any = None, **options: Any) -> Any:
    """The error that `parse` raises, checked for the promises every refusal makes."""
    error = quickly(lambda: parse(text, coefficients, **options))
    assert isinstance(error, RdgraphError), f"{text!r:.60} was read as {error}"
    if isinstance(error, LanguageError):
        assert error.expected
        assert error.got
        assert error.remedy
        assert 1 <= error.column <= len(error.text) + 1
        excerpt, caret = quickly(lambda: str(error)).split("\n")[1:3]
        pointed = error.text[error.offset : error.offset + 1]
        shown = pointed if pointed.isprintable() else " "
        assert excerpt[caret.index("^") :][:1] == shown
    return error


# ---------------------------------------------------------------------- round trips
@pytest.mark.slow
@settings(max_examples=400)
@given(systems())
def test_a_printed_system_reads_back_to_itself(system: System) -> None:
    again = parse(str(system))
    assert again == system
    assert str(again) == str(system)
    assert parse(f" dH/dt=  {system}\n") == system
    assert parse(system) is system
    assert parse(system.text, system.coefficients, assume=system.assumptions.texts()) == system


@settings(max_examples=60)
@given(systems(depth=6))
def test_deep_systems_read_back_to_themselves(system: System) -> None:
    assume(len(system.text) < 3000)
    assert parse(str(system)) == system


def numbers_for(system: System, nodes: int = 4, channels: int = 3) -> dict[str, Any]:
    """Values of every letter that respect the assumed signs."""
    generator = np.random.default_rng(7)
    shapes: dict[Kind, tuple[int, ...]] = {
        Kind.SCALAR: (), Kind.CHANNEL: (channels,), Kind.NODE: (nodes, 1),
        Kind.FIELD: (nodes, channels), Kind.OPERATOR: (nodes, nodes), Kind.MATRIX: (channels, channels),
    }  # fmt: skip
    letters = {name: kind for name, kind in {**STRUCTURAL, **system.coefficients}.items() if name not in "LIM"}
    values = {}
    for name, kind in letters.items():
        low = system.assumptions.sign(name) in ("negative", "nonpositive")
        size = generator.uniform(0.2, 1.1, shapes[kind])
        values[name] = -size if low else size if kind in (Kind.SCALAR, Kind.CHANNEL, Kind.NODE) else size - 0.7
    return {**values, "M": np.array([[1.0], [0.0], [1.0], [0.0]])}


def value_of(system: System, values: dict[str, Any]) -> np.ndarray:
    """Value of the right-hand side, not a number where it overflows."""
    try:
        with np.errstate(all="ignore"):
            return np.broadcast_to(dense.evaluate(system.expression, values), values["H"].shape)
    except (OverflowError, ZeroDivisionError):
        return np.full(values["H"].shape, np.nan)


def normal_or_none(system: System) -> sp.Expr | None:
    try:
        return system.normal
    except NotApplicable:
        return None


@pytest.mark.slow
@settings(max_examples=300)
@given(systems())
def test_the_sympy_form_reads_back_to_an_equal_system(system: System) -> None:
    try:
        form = system.sympy
    except RdgraphError:
        assume(False)
    again = parse(form, system.coefficients, assume=system.assumptions.texts())
    values = numbers_for(system)
    expected = value_of(system, values)
    assume(np.isfinite(expected).all() and np.abs(expected).max() < 1e6)
    np.testing.assert_allclose(value_of(again, values), expected, rtol=0, atol=1e-8 * (1 + np.abs(expected).max()))
    first, second = normal_or_none(system), normal_or_none(again)
    if first is None or second is None or any(p.exp.is_negative for e in (first, second) for p in e.atoms(sp.Pow)):
        return  # a normal form decides equality of polynomials; quotients have several
    assert is_zero(sp.expand(first - second))


@settings(max_examples=150)
@given(systems(linear=True))
def test_the_sympy_form_of_a_linear_system_has_the_same_normal_form(system: System) -> None:
    try:
        form = system.sympy
    except RdgraphError:
        assume(False)
    assert parse(form, system.coefficients, assume=system.assumptions.texts()).normal == system.normal


@pytest.mark.parametrize(
    "text",
    [
        "(k*H)@W where k channel", "(k*H)@W where k node", "k*H@W where k channel", "A@(k*H) where k node",
        "((A@M)*A)@H", "(k*A + I)@H where k channel", "(k*A)**2@H where k node", "-(k*A)@H where k node",
        "H@W@W", "H@W@(W + 2*W)", "H - H", "0*H", "A@(1 + 0*H)", "A@(k + 0*H) where k channel", "(M + 0*H)@W",
        "exp(1)*H", "abs(exp(alpha))*H", "sqrt(alpha)**3*H", "sqrt(exp(H))", "tanh(relu(sin(H)))", "exp(H)**2*H0",
        "A**32@A**8@H", "alpha**32*alpha**8*H", "H/alpha**2", "H/(2*alpha)", "1 - H", "M + alpha*H",
    ],
)  # fmt: skip
def test_sympy_forms_that_sympy_rewrites(text: str) -> None:
    system = parse(text)
    again = parse(system.sympy, system.coefficients)
    values = numbers_for(system)
    np.testing.assert_allclose(value_of(again, values), value_of(system, values), rtol=1e-9, atol=1e-12)
    assert parse(str(again)) == again
    assert is_zero(sp.expand(again.normal - system.normal))


@pytest.mark.parametrize("name", list(catalogue))
def test_every_catalogued_system_survives_text_and_sympy(name: str) -> None:
    system = catalogue[name]
    assert parse(name) == parse(name.lower()) == parse(f" {name} ") == system
    assert parse(name).name == name
    assert parse(str(system)) == system
    if system.is_single:
        again = parse(system.sympy, system.coefficients, assume=system.assumptions.texts())
        assert is_zero(sp.expand(again.normal - system.normal))


@given(
    whole=st.text("0123456789", min_size=1, max_size=20).map(lambda s: s.lstrip("0") or "0"),
    decimals=st.text("0123456789", max_size=19),
    exponent=st.none() | st.integers(-30, 30),
)
@example(whole="12345678901234567", decimals="", exponent=-30)
@example(whole="12345678901234567890", decimals="", exponent=30)
@example(whole="0", decimals="0000000000000000001", exponent=-30)
@example(whole="98765432109876543210", decimals="0123456789012345678", exponent=-20)
def test_numbers_are_exact_and_read_back(whole: str, decimals: str, exponent: int | None) -> None:
    literal = whole + (f".{decimals}" if decimals else "") + (f"e{exponent}" if exponent is not None else "")
    system = parse(f"{literal}*H")
    number = system.expression.args[0]
    assert Fraction(int(number.p), int(number.q)) == Fraction(literal)
    assert parse(str(system)) == system


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("2*(-H)", Times(sp.Integer(2), Negative(Name("H", Kind.FIELD)))),
        ("-H*2", Times(Negative(Name("H", Kind.FIELD)), sp.Integer(2))),
        ("-H**2", Negative(Power(Name("H", Kind.FIELD), sp.Integer(2)))),
        ("(-H)**2", Power(Negative(Name("H", Kind.FIELD)), sp.Integer(2))),
        ("H**-2", Power(Name("H", Kind.FIELD), sp.Integer(-2))),
        ("H**-\t2", Power(Name("H", Kind.FIELD), sp.Integer(-2))),
        ("H**-\n 2", Power(Name("H", Kind.FIELD), sp.Integer(-2))),
        ("(H**2)**3", Power(Power(Name("H", Kind.FIELD), sp.Integer(2)), sp.Integer(3))),
        ("H - (H0 - 1)", Minus(Name("H", Kind.FIELD), Minus(Name("H0", Kind.FIELD), sp.S.One))),
        ("H/(H0/2)", Over(Name("H", Kind.FIELD), Over(Name("H0", Kind.FIELD), sp.Integer(2)))),
        ("A@(A@H)", Apply(Name("A", Kind.OPERATOR), Apply(Name("A", Kind.OPERATOR), Name("H", Kind.FIELD)))),
        ("tanh(1 + H)", Call("tanh", Plus(sp.S.One, Name("H", Kind.FIELD)))),
        ("2.50*H", Times(sp.Rational(5, 2), Name("H", Kind.FIELD))),
    ],
)
def test_the_tree_is_what_python_would_group(text: str, tree: sp.Basic) -> None:
    assert parse(text).expression == tree
    assert parse(to_text(tree)).expression == tree


def test_nothing_is_simplified_while_reading() -> None:
    assert parse("H - H") != parse("0*H")
    assert str(parse("H + 0*H - --H0/1")) == str(parse(str(parse("H + 0*H - --H0/1"))))
    assert parse("+H") == parse("((H))") == parse("H")


def balanced_sum(levels: int, leaf: str = "H") -> str:
    return leaf if levels == 0 else f"({balanced_sum(levels - 1, leaf)}+{balanced_sum(levels - 1, leaf)})"


def nested(pattern: str, levels: int, inner: str = "H") -> str:
    for _ in range(levels):
        inner = pattern.replace("?", inner)
    return inner


@pytest.mark.parametrize(
    "text",
    [
        nested("H*-(?)", 50),
        nested("-(?)", 55),
        nested("H - (?)", 55),
        nested("1/(1+tanh(?))", 25),
        balanced_sum(9),
        balanced_sum(8, "1e30*H"),
        "H+" * 140 + "H",
        balanced_sum(6, "(H*-H0**-2/tanh(-(H)))"),
    ],
)
def test_large_systems_read_back_or_are_refused_at_once(text: str) -> None:
    system = quickly(lambda: parse(text))
    if isinstance(system, LanguageError):
        assert "characters" in system.expected
        return
    assert quickly(lambda: parse(str(system))) == system


@pytest.mark.parametrize("places", [(1, 3), (-1, 2), (7, 11)])
def test_numbers_that_no_literal_writes_are_refused_in_trees(places: tuple[int, int]) -> None:
    with pytest.raises(RdgraphError):
        System.of(Times(sp.Rational(*places), Name("H", Kind.FIELD)))


# ---------------------------------------------------------------------- the published strategies
def is_connected(graph: np.ndarray) -> bool:
    nodes = len(graph)
    return bool((np.linalg.matrix_power(np.eye(nodes) + (graph > 0), nodes) > 0).all())


@given(st.booleans(), st.booleans(), st.data())
def test_drawn_graphs_are_symmetric_without_loops(connected: bool, weighted: bool, data: st.DataObject) -> None:
    graph = data.draw(adjacency(min_nodes=2, max_nodes=6, connected=connected, weighted=weighted))
    family = data.draw(graph_families(min_nodes=4, max_nodes=9))
    assert 2 <= len(graph) <= 6
    assert 4 <= len(family) <= 9
    for matrix in (graph, family):
        assert matrix.dtype == np.float64
        assert (matrix == matrix.T).all()
        assert (np.diag(matrix) == 0).all()
        assert (matrix >= 0).all()
    assert is_connected(graph) or not connected
    assert weighted or set(np.unique(graph)) <= {0.0, 1.0}


def drawn(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
    found: list[Any] = []

    @settings(max_examples=count)
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


def test_drawn_graphs_cover_isolated_nodes_and_the_families() -> None:
    graphs = drawn(adjacency(), 200)
    assert any((graph.sum(0) == 0).any() for graph in graphs)
    assert not all(is_connected(graph) for graph in graphs)
    degrees = {tuple(sorted(graph.sum(0))) for graph in drawn(graph_families(min_nodes=5, max_nodes=5), 300)}
    assert {(1, 1, 2, 2, 2), (2, 2, 2, 2, 2), (4, 4, 4, 4, 4), (1, 1, 1, 1, 4), (2, 2, 2, 3, 3)} <= degrees


@pytest.mark.slow
def test_drawn_systems_use_the_whole_language() -> None:
    found = drawn(systems(), 500)
    parts = [part for system in found for part in sp.preorder_traversal(system.expression)]
    assert {type(part) for part in parts} >= {Name, Plus, Minus, Times, Over, Apply, Negative, Power, Call}
    assert {part.function for part in parts if isinstance(part, Call)} == set(FUNCTIONS)
    assert {part.kind for part in parts if isinstance(part, Name)} == set(Kind)
    names = {name for system in found for name in system.coefficients}
    assert names & set(USUAL_COEFFICIENTS)
    assert names - set(USUAL_COEFFICIENTS)
    assert {sign for system in found for _, sign in system.assumptions.signs} >= {"negative", "real"}
    assert any(system.assumptions.relations for system in [*found, *drawn(systems(linear=True), 500)])


@settings(max_examples=60)
@given(systems(linear=True), systems(linear=False), systems(kinds=["channel"]))
def test_drawn_systems_keep_their_promises(linear: System, nonlinear: System, channels: System) -> None:
    assert linear.structure.is_polynomial_in_operator
    assert not nonlinear.structure.linear
    assert set(channels.coefficients.values()) <= {Kind.CHANNEL}


@given(st.sampled_from(Kind), st.data())
def test_drawn_expressions_have_the_kind_asked_for(kind: Kind, data: st.DataObject) -> None:
    assert kind_of(data.draw(expressions(kind))) is kind


@given(st.integers(1, 5), st.integers(1, 3), st.data())
def test_drawn_states_and_values_stay_within_bounds(nodes: int, channels: int, data: st.DataObject) -> None:
    state = data.draw(states(nodes, channels, bound=2.0))
    assert state.shape == (nodes, channels)
    assert state.dtype == np.float64
    assert np.abs(state).max() <= 2.0
    values = data.draw(coefficient_values(["alpha", "k"], 0.1, 0.7))
    assert set(values) == {"alpha", "k"}
    assert all(isinstance(value, Fraction | float) and 0.1 <= float(value) <= 0.7 for value in values.values())


# ---------------------------------------------------------------------- LaTeX
def brackets_balance(latex: str) -> bool:
    depth = 0
    for character in latex:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return False
    return depth == 0


@settings(max_examples=300)
@given(systems())
def test_latex_is_well_formed(system: System) -> None:
    latex = system.latex()
    assert brackets_balance(latex)
    assert latex.count(r"\left(") == latex.count(r"\right)")
    assert latex.isascii()
    assert not re.search(r"[\w}] -\\", latex.replace(" - ", " + "))  # a product never reads as a difference
    assert system._repr_latex_() == rf"$\dot{{\mathbf{{H}}}} = {latex}$"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("-alpha*L@H", r"-\alpha \mathbf{L} \mathbf{H}"),
        ("alpha*H + beta*H0", r"\alpha \mathbf{H} + \beta \mathbf{H}(0)"),
        ("H*(1 - H)", r"\mathbf{H} \odot \left(1 - \mathbf{H}\right)"),
        ("H**2", r"\mathbf{H}^{\circ 2}"),
        ("A**2@H", r"\mathbf{A}^{2} \mathbf{H}"),
        ("H/2", r"\frac{\mathbf{H}}{2}"),
        ("0.5*H", r"\frac{1}{2} \mathbf{H}"),
        ("sqrt(H)", r"\sqrt{\mathbf{H}}"),
        ("tanh(A@H)", r"\tanh\left(\mathbf{A} \mathbf{H}\right)"),
        ("k_1*H where k_1 channel", r"k_{1} \odot \mathbf{H}"),
    ],
)
def test_latex_of_known_systems(text: str, latex: str) -> None:
    assert parse(text).latex() == latex


@pytest.mark.parametrize(
    ("text", "misread"),
    [
        ("2*(-H)", r"2 -\mathbf{H}"),
        ("A@(-H)", r"\mathbf{A} -\mathbf{H}"),
        ("2*3*H", r"2 3 \mathbf{H}"),
        ("(H/2)**2", r"\frac{\mathbf{H}}{2}^{\circ 2}"),
        ("0.5**2*H", r"\frac{1}{2}^{2} \mathbf{H}"),
        ("H - (H0 - H)", r"\mathbf{H} - \mathbf{H}(0) - \mathbf{H}"),
        ("H@(W_1@W__2) where W_1 matrix, W__2 matrix", r"\mathbf{H} \left(\mathbf{W_1} \mathbf{W__2}\right)"),
    ],
)
def test_latex_never_says_something_else(text: str, misread: str) -> None:
    """2*(-H) is no difference, 2*3 is not 23, a fraction is bracketed under a power, one subscript per letter."""
    assert parse(text).latex() != misread


# ---------------------------------------------------------------------- refusals: the place, and what to do
REFUSALS = [
    # text, column, expected, got, remedy
    ("A*H", 2, "elementwise factors", "operator * field", "use A@H"),
    ("beta*H + A * H", 12, "elementwise factors", "operator * field", "use A@H"),
    ("dH/dt = A*H where beta<0", 10, "elementwise factors", "operator * field", "use A@H"),
    ("H*A", 2, "elementwise factors", "field * operator", "A@H"),
    ("H@A", 2, "operator @ field", "field @ operator", "write A@H, not H@A"),
    ("H@H", 2, "operator @ field", "field @ field", "use *"),
    ("A@beta", 2, "operator @ field", "operator @ scalar", "beta*(A@H)"),
    ("A@W@H", 2, "operator @ field", "operator @ matrix", "A@H@W"),
    ("W@H", 2, "operator @ field", "matrix @ field", "write H@W"),
    ("W*H", 2, "elementwise factors", "matrix * field", "H@W"),
    ("A*M@H", 2, "elementwise factors", "operator * node", "beta*A@H"),
    ("A + H", 3, "two terms of one kind", "operator and field", "A@H"),
    ("(A + 1)@H", 4, "two terms of one kind", "operator and scalar", "I - A"),
    ("H + W", 3, "two terms of one kind", "field and matrix", "H@W"),
    ("H/A", 2, "a divisor", "field / operator", "divide by a scalar"),
    ("H@W**2", 4, "a field, coefficient or operator", "matrix", "H@W@W"),
    ("A**-1@H", 2, "an operator power >= 0", "-1", "not inverted"),
    ("tanh(A)@H", 1, "inside tanh(...)", "operator", "tanh(A@H)"),
    ("beta", 1, "a field", "a scalar", "beta*H"),
    ("A", 1, "a field", "operator", "A@H"),
    ("W", 1, "a field", "matrix", "A@H"),
    ("3", 1, "a field", "a scalar", "beta*H"),
    # names
    ("alhpa*H", 1, "a known name", "'alhpa'", "did you mean alpha?"),
    ("-alpha*L@H + gama*H", 14, "a known name", "'gama'", "did you mean gamma?"),
    ("ALPHA*H", 1, "a known name", "'ALPHA'", "did you mean alpha?"),
    ("h1*H", 1, "a known name", "'h1'", "coefficients={'h1': 'scalar'}"),
    ("zzz*H", 1, "a known name", "'zzz'", "declare it: coefficients={'zzz': 'scalar'}"),
    ("lam*H", 1, "a letter of the language", "an eigenvalue of L", "another name"),
    ("H + T*H", 5, "a letter of the language", "the end time", "another name"),
    ("tau*H", 1, "a letter of the language", "the step size", "another name"),
    ("pi*H", 1, "a letter of the language", "the constant", "another name"),
    ("tanh*H", 1, "tanh(...)", "tanh without brackets", "write tanh(H)"),
    ("H + relu", 5, "relu(...)", "relu without brackets", "write relu(H)"),
    ("tahn(H)", 1, "a known function", "'tahn'", "did you mean tanh?"),
    ("print(H)", 1, "a known function", "'print'", "known functions: tanh"),
    ("A(H)", 1, "a known function", "'A'", "A@( ... )"),
    ("2(H)", 1, "a function name", "Constant", "write *"),
    ("tanh()", 1, "tanh(expression)", "0 arguments", "exactly one"),
    ("tanh(*H)", 1, "tanh(expression)", "1 arguments", "exactly one"),
    ("lambda*H", 1, "an expression", "keyword", "lambda_1"),
    # powers and numbers
    ("H**H", 4, "a whole number", "H", "sqrt(H)"),
    ("H**0.5", 4, "a whole number", "0.5", "sqrt(H)"),
    ("H**2**2", 4, "a whole number", "2**2", "H**2"),
    ("H**True", 4, "a whole number", "True", "H**2"),
    ("H**0x10", 4, "a whole number", "0x10", "H**2"),
    ("H**1_0", 4, "a whole number", "1_0", "H**2"),
    ("H**99999999", 2, "at most 32", "99999999", "smaller power"),
    ("H**-99999999", 2, "at most 32", "-99999999", "smaller power"),
    ("H**33", 2, "at most 32", "33", "smaller power"),
    ("1e999999999*H", 1, "at most 40 digits", "11 characters", "name the constant"),
    ("1e-31*H", 1, "exponent 30", "5 characters", "name the constant"),
    ("H*" + "7" * 41, 3, "at most 40 digits", "41 characters", "name the constant"),
    ("0x10*H", 1, "a decimal number", "0x10", "0.25 or 3"),
    ("1_000*H", 1, "a decimal number", "1_000", "0.25 or 3"),
    ("1j*H", 1, "a decimal number", "1j", "0.25 or 3"),
    ("None*H", 1, "a decimal number", "None", "0.25 or 3"),
    # grammar
    ("", 1, "an equation", "nothing", "right-hand side"),
    (" \t\n ", 1, "an equation", "nothing", "right-hand side"),
    ("dH/dt = ", 8, "an equation", "nothing", "right-hand side"),
    ("H +", 4, "an expression", "invalid syntax", "near the mark"),
    ("H @ ", 4, "an expression", "invalid syntax", "near the mark"),
    ("H */ H", 4, "an expression", "invalid syntax", "near the mark"),
    ("H H", 3, "an expression", "invalid syntax", "near the mark"),
    ("  (H + H0", 3, "an expression", "never closed", "near the mark"),
    ("H + H0)", 7, "an expression", "unmatched", "near the mark"),
    ("H.T", 1, "names, numbers", "Attribute", "plain maths"),
    ("H if H else H0", 1, "names, numbers", "IfExp", "plain maths"),
    ("H and H0", 1, "names, numbers", "BoolOp", "plain maths"),
    ("not H", 1, "names, numbers", "UnaryOp", "plain maths"),
    ("H // 2", 1, "names, numbers", "BinOp", "plain maths"),
    ("()", 1, "names, numbers", "Tuple", "plain maths"),
    ("H^2", 2, "a character of the language", "'^'", "**"),
    ("H = 1", 1, "a field with ' before the =", "H", "a right-hand side alone"),
    ("dH/dt == H", 7, "a character of the language", "'='", "right-hand side"),
    ("H[0]", 2, "a character of the language", "'['", "round brackets"),
    ("H; H", 1, "a field with ' before the =", "H", "a right-hand side alone"),
    ("H + 'a'", 5, "' after the name of a field", "' alone", "write u'"),
    ("H # note", 3, "a character of the language", "'#'", "round brackets"),
    ("tanh(H, H)", 7, "a character of the language", "','", "round brackets"),
    ("H\\\n", 2, "a character of the language", "\\\\", "round brackets"),
    ("H\x00", 2, "a character of the language", "\\x00", "round brackets"),
    ("\x00", 1, "a character of the language", "\\x00", "round brackets"),
    # look-alikes
    ("\u0410@H", 1, "plain ASCII", "CYRILLIC CAPITAL LETTER A", "write A"),
    ("A@\u041d", 3, "plain ASCII", "CYRILLIC CAPITAL LETTER EN", "write H"),
    ("\u03b1*H", 1, "plain ASCII", "GREEK SMALL LETTER ALPHA", "write alpha"),
    ("H \u2212 H0", 3, "plain ASCII", "MINUS SIGN", "write -"),
    ("H\u00b2", 2, "plain ASCII", "SUPERSCRIPT TWO", "write **2"),
    ("2\u00b7H", 2, "plain ASCII", "MIDDLE DOT", "write *"),
    ("\U0001d407", 1, "plain ASCII", "MATHEMATICAL BOLD CAPITAL H", "write H"),
    ("\uff28", 1, "plain ASCII", "FULLWIDTH LATIN CAPITAL LETTER H", "write H"),
    ("\u0663*H", 1, "plain ASCII", "ARABIC-INDIC DIGIT THREE", "ASCII"),
    ("H\u200b", 2, "plain ASCII", "ZERO WIDTH SPACE", "use plain ASCII"),
    ("\ufeffH", 1, "plain ASCII", "ZERO WIDTH NO-BREAK SPACE", "use plain ASCII"),
    ("H\u202e", 2, "plain ASCII", "RIGHT-TO-LEFT OVERRIDE", "use plain ASCII"),
    ("\ud800*H", 1, "plain ASCII", "\\ud800", "use plain ASCII"),
    # size
    ("(" * 10_000 + "H" + ")" * 10_000, 61, "at most 60 nested brackets", "more", "superfluous"),
    ("-" * 10_000 + "H", 4001, "at most 4000 characters", "10001 characters", "shorten"),
    ("+".join(["H"] * 5_000), 4001, "at most 4000 characters", "9999 characters", "shorten"),
    ("1" * 10**5 + "*H", 4001, "at most 4000 characters", "100002 characters", "shorten"),
    ("x" * 10**6, 4001, "at most 4000 characters", "1000000 characters", "shorten"),
    ("1" * 3_000 + "*H", 1, "at most 40 digits", "3000 characters", "name the constant"),
    ("H**" + "9" * 3_000, 2, "at most 32", "9" * 20, "smaller power"),
    ("H**0x" + "f" * 3_900, 4, "a whole number", "0xff", "H**2"),
]


@pytest.mark.parametrize(
    ("text", "column", "expected", "got", "remedy"), REFUSALS, ids=[ascii(case[0])[:30] for case in REFUSALS]
)
def test_refusals_point_at_the_place(text: str, column: int, expected: str, got: str, remedy: str) -> None:
    error = refusal(text)
    assert isinstance(error, LanguageError)
    assert isinstance(error, ValueError)
    assert expected in error.expected
    assert got in error.got
    assert remedy in error.remedy
    assert error.column == column
    assert len(str(error)) < 1000
    assert {f"expected: {error.expected}", f"got:      {error.got}", f"remedy:   {error.remedy}"} <= {
        line for line in str(error).split("\n") if line
    }


@pytest.mark.parametrize(
    "text",
    [
        "-" * 3_900 + "H",
        "+".join(["H"] * 1_900),
        "-(" * 59 + "+".join(["H"] * 120) + ")" * 59,
        "tanh" + "(" * 10_000,
        ")" * 10_000,
        " " * 10**6,
        " " * 10**6 + "H",
        "dH/dt" + " " * 10**6 + "= H*A",
        "dH" + "\t" * 10**6,
        "\u03b1" * 10**6,
        "\x00" * 10**6,
        "H" + "." * 3_000,
        "H" + "()" * 1_900,
        "tanh(" * 59 + "A" + ")" * 59,
        "where" * 10**5,
        "H where " + ",".join(["beta<0"] * 10**5),
        "H where " + "<".join(["0"] * 10**5),
        "H where " + "beta" * 10**5 + "<0",
        "H where " + "," * 10**6,
        "H where beta<" + "(" * 10**5,
        "H where beta<" + "-" * 3_900 + "1",
        "H where beta<1e999999999",
        "H where beta<2**99999999",
    ],
    ids=lambda text: ascii(text)[:24],
)
def test_exhausting_texts_are_refused_at_once(text: str) -> None:
    assert str(refusal(text))


def test_the_whole_message() -> None:
    assert str(refusal("beta*H + A*H")) == (
        "cannot read the equation, column 11\n"
        "  beta*H + A*H\n"
        "            ^\n"
        "expected: elementwise factors (fields and coefficients)\n"
        "got:      operator * field\n"
        "remedy:   operators are applied with @, as in A@H (use A@H, not A*H)"
    )


@pytest.mark.parametrize("name", [*RESERVED, *FUNCTIONS])
def test_reserved_names_are_neither_read_nor_declared(name: str) -> None:
    assert isinstance(refusal(f"{name}*H"), LanguageError)
    error = refusal("H", [name])
    assert error.expected == "a free name"
    assert "reserved" in error.got
    assert error.remedy == f"call it {name}_1"
    assert parse(f"{name}_1*H", [f"{name}_1"]).coefficients == {f"{name}_1": Kind.SCALAR}


@pytest.mark.parametrize("source", [None, 3, 2.5, b"H", [], ["H", 3], {"u": 3}, object(), sp.eye(2)])
def test_other_objects_are_refused(source: Any) -> None:
    assert "expected text, a sympy expression or a System" in str(refusal(source))


@pytest.mark.parametrize(
    "source",
    [
        sp.pi * STATE, sp.I * STATE, sp.Symbol("lam") * STATE, sp.Symbol("zzz") * STATE, sp.oo * STATE, sp.gamma(STATE),
        STATE**STATE, STATE ** sp.Rational(1, 3), sp.Eq(STATE, 1), sp.Integer(3), sp.nan, sp.true, sp.Tuple(1, 2),
        sp.MatrixSymbol("A", 2, 2),
        sp.Symbol("H", commutative=False) * sp.Symbol("A", commutative=False),
    ],
)  # fmt: skip
def test_sympy_expressions_outside_the_language_are_refused(source: sp.Basic) -> None:
    assert "expected" in str(refusal(source))


def test_plain_and_non_commutative_symbols_are_read() -> None:
    A, H = sp.symbols("A H", commutative=False)
    beta = sp.Symbol("beta")
    assert parse(beta * A * H).normal == parse("beta*A@H").normal
    assert parse(A**2 * H - H / 3).normal == parse("A@A@H - H/3").normal
    X, S = sp.MatrixSymbol("H", 5, 2), sp.MatrixSymbol("A", 5, 5)
    assert parse(S * X - 2 * X).normal == parse("A@H - 2*H").normal


# ---------------------------------------------------------------------- typing
LETTERS = {"s": "alpha", "c": "k", "n": "M", "f": "H", "o": "A", "m": "W"}
KINDS = dict(zip("scnfom", Kind, strict=True))
#: Kind of left (row) and right (column) under each sign; a dot is refused.
TYPING = {
    "+": """
        s c n f . .
        c c f f . .
        n f n f . .
        f f f f . .
        . . . . o .
        . . . . . m""",
    "*": """
        s c n f o m
        c c f f o .
        n f n f o .
        f f f f . .
        o o . . . .
        m . . . . .""",
    "/": """
        s c n f . .
        c c f f . .
        n f n f . .
        f f f f . .
        o . . . . .
        m . . . . .""",
    "@": """
        . . . . . .
        . . . . . .
        . . . . . .
        . . . . . f
        . . n f o .
        . . . . . m""",
}
TYPING["-"] = TYPING["+"]
VOCABULARY = Vocabulary.standard({"k": Kind.CHANNEL})


def typing_cases() -> list[tuple[str, Kind | None]]:
    cases: list[tuple[str, Kind | None]] = []
    for sign, table in TYPING.items():
        for left, row in zip("scnfom", table.split("\n")[1:], strict=True):
            for right, result in zip("scnfom", row.split(), strict=True):
                cases.append((f"{LETTERS[left]} {sign} {LETTERS[right]}", KINDS.get(result)))
    for letter, word in LETTERS.items():
        kind = KINDS[letter]
        elementwise = letter in "scnf"
        cases += [(f"-{word}", kind), (f"+{word}", kind), (f"({word})", kind)]
        cases += [(f"{word}**2", kind if letter != "m" else None), (f"{word}**0", kind if letter != "m" else None)]
        cases += [(f"{word}**-1", kind if elementwise else None)]
        cases += [(f"{function}({word})", kind if elementwise else None) for function in FUNCTIONS]
    return cases


@pytest.mark.parametrize(("text", "kind"), typing_cases())
def test_typing(text: str, kind: Kind | None) -> None:
    if kind is None:
        with pytest.raises(LanguageError) as caught:
            read_expression(text, VOCABULARY)
        assert caught.value.remedy
    else:
        assert kind_of(read_expression(text, VOCABULARY)) is kind


def test_ill_typed_trees_are_refused_without_text() -> None:
    with pytest.raises(TypeMismatch, match=r"operator . field") as caught:
        System.of(Times(Name("A", Kind.OPERATOR), Name("H", Kind.FIELD)))
    assert "use A@H" in caught.value.remedy
    with pytest.raises(TypeMismatch, match="got Symbol"):
        System.of(sp.Symbol("H"))


# ---------------------------------------------------------------------- declarations
def test_usual_letters_need_no_declaration() -> None:
    system = parse("*".join([*USUAL_COEFFICIENTS, "H"]))
    assert system.coefficients == dict.fromkeys(sorted(USUAL_COEFFICIENTS), Kind.SCALAR)
    assert system.kinds == ()


@pytest.mark.parametrize("kind", ["scalar", "channel", "node", "matrix"])
@pytest.mark.parametrize("name", ["k", "beta", "rho_1", "X", "where_1", "channel", "dH", "printed"])
def test_declarations_by_argument_and_by_clause_agree(name: str, kind: str) -> None:
    body = f"A@H@{name}" if kind == "matrix" else f"{name}*A@H"
    system = parse(body, {name: kind})
    assert system.coefficients == {name: Kind(kind)}
    assert parse(f"{body} where {name} {kind}") == system
    assert parse(f"dH/dt = {body} where\n {name}   {kind}") == system
    assert parse(body, {name: Kind(kind)}) == system
    if kind == "scalar":
        assert parse(body, [name]) == parse(body, name) == system


def test_the_clause_gives_signs_and_relations() -> None:
    system = parse("alpha*H + beta*A@H + k*H0 where k channel, beta < 0, k real, beta <= 2*alpha, 0 < alpha")
    assert system.coefficients == {"alpha": Kind.SCALAR, "beta": Kind.SCALAR, "k": Kind.CHANNEL}
    assert [system.assumptions.sign(n) for n in ("alpha", "beta", "k")] == ["positive", "negative", "real"]
    assert system.assumptions.texts() == ("beta negative", "k real", "beta <= 2*alpha")
    assert str(system).endswith(" where k channel, beta negative, k real, beta <= 2*alpha")
    same = parse("alpha*H + beta*A@H + k*H0", {"k": "channel"}, assume=["2*alpha >= beta", "0 > beta", "k real"])
    assert same == system


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("beta<0", "negative"), ("0 > beta", "negative"), ("beta <= 0", "nonpositive"), ("beta>=0", "nonnegative"),
        ("beta>0", "positive"), ("0<beta", "positive"), ("beta real", "real"), ("beta nonpositive", "nonpositive"),
    ],
)  # fmt: skip
def test_signs(text: str, sign: str) -> None:
    system = parse("beta*H", assume=text)
    assert system.assumptions.sign("beta") == sign
    assert parse("beta*H", assume=[text]) == parse(f"beta*H where {text}") == system


def test_chains_give_one_relation_per_sign() -> None:
    system = parse("(alpha + beta)*H", assume="0 < alpha < beta <= 1")
    assert system.assumptions.texts() == ("alpha < beta", "beta <= 1")
    assert Assumptions.read(system.assumptions.texts()) == system.assumptions


def test_what_does_not_occur_is_dropped() -> None:
    assert parse("alpha*H where k channel, beta < 0, beta < alpha") == parse("alpha*H")


def test_declarations_refine_a_catalogued_system() -> None:
    system = parse("BS", {"beta": "channel"}, assume="beta<0")
    assert str(system) == "-alpha*L@H + beta*(A@H - A@A@H) where beta channel, beta negative"
    assert system.name == "BS"
    assert parse(parse("BS"), {"beta": "channel"}, assume="beta<0") == system


@pytest.mark.parametrize(
    ("coefficients", "fragment"),
    [
        (["H"], "reserved for a letter"), (["lam"], "an eigenvalue of L"), (["tanh"], "an elementwise function"),
        (["2k"], "'2k'"), (["k-1"], "'k-1'"), (["k l"], "'k l'"), ([""], "''"), (["_k"], "'_k'"),
        (["\u03b1"], "\u03b1"), (["__class__"], "'__class__'"), (["lambda"], "keyword"), (["if"], "keyword"),
        (["None"], "keyword"), (["True"], "keyword"), ({"k": "vector"}, "'vector'"), ({"k": ""}, "''"),
        ({"k": None}, "None"), ({"k": "field"}, "'field'"), ({"k": "operator"}, "'operator'"), ({1: "scalar"}, "int"),
        ([None], "None"), (5, "5"), ([["k"]], "k"),
    ],
)  # fmt: skip
def test_wrong_declarations(coefficients: Any, fragment: str) -> None:
    error = refusal("H", coefficients)
    assert fragment in str(error)
    assert "expected" in str(error)


@pytest.mark.parametrize(
    ("assumption", "fragment"),
    [
        ("beta imaginary", "known words: positive"), ("", "known words"), ("beta", "known words"), ("foo real", "foo"),
        ("foo < 0", "unknown name 'foo'"), ("H < 0", "a field"), ("A < 0", "an? operator"), ("W real", "'W'"),
        ("beta < ", "nothing"), ("< 0", "nothing"), ("beta < (", "never closed"), ("lam < 1", "an eigenvalue"),
        ("beta == 0", "known words"), ("beta < __import__('os')", "' after the name of a field"), (5, "5"), ([5], "5"),
    ],
)  # fmt: skip
def test_wrong_assumptions(assumption: Any, fragment: str) -> None:
    error = refusal("beta*H", assume=assumption)
    assert re.search(fragment, str(error))


@pytest.mark.parametrize(
    "clause",
    [
        "where", "where ,", "where beta", "where beta foo", "where beta channel channel", "where beta channel,",
        "where H channel", "where lam node", "where where", "where beta < 0 where beta real", "where beta = 2",
        "where beta matrix",
    ],
)  # fmt: skip
def test_wrong_clauses(clause: str) -> None:
    assert "expected" in str(refusal(f"beta*H {clause}"))
    assert "expected" in str(refusal(clause))


def test_unknown_catalogue_names_offer_the_closest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'Nagumo'") as caught:
        catalogue["nagumoo"]
    assert isinstance(caught.value, KeyError)
    assert "allen-cahn" in catalogue
    assert "__class__" not in catalogue


@pytest.mark.parametrize(
    "value", ["A", "H@A", "__import__('os')", "zzz", "", float("nan"), float("inf"), object(), [1], None, 1j, sp.pi]
)
def test_values_that_cannot_replace_a_coefficient(value: Any) -> None:
    assert isinstance(quickly(lambda: parse("beta*A@H").replace(beta=value)), RdgraphError)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2, "2*H"), (0.1, "0.1*H"), (-0.5, "-0.5*H"), (Fraction(1, 3), "1/3*H"), (sp.Rational(-2, 7), "-(2/7)*H"),
        ("2*gamma", "2*gamma*H"), (np.float64(0.25), "0.25*H"), (np.int64(3), "3*H"),
    ],
)  # fmt: skip
def test_values_that_replace_a_coefficient(value: Any, text: str) -> None:
    system = parse("beta*H where beta < 0").replace(beta=value)
    assert system == parse(text)
    assert parse(str(system)) == system


# ---------------------------------------------------------------------- texts that exhaust the algebra
def tower(base: str, levels: int, exponent: int = 32) -> str:
    return nested(f"(?)**{exponent}", levels, base)


BOMBS = [
    "((((2**32)**32)**32)**32)*H",
    "(1+H+A@H+H0)**32*(1+H)**32",
    "(1+H+H0)**32*(1+H)**32",
    tower("2*H", 7),
    tower("H+H", 8),
    tower("0.5", 9) + "*H",
    tower("alpha/3", 8) + "*H",
    tower("2**-32", 9, -32) + "*H",
    tower("1+sqrt(2)", 5) + "*H",
    tower("exp(9*H)", 10),
    tower("A", 3) + "@H",
    tower("L", 6) + "@H",
    tower("I", 6) + "@H",
    tower("2*A", 6) + "@H",
    "@".join(["(L+2*A+beta*I)"] * 60) + "@H",
    "(beta*A + gamma*I)**32@H where beta node, gamma node",
    "H@(" + "@".join(["(W+k)"] * 30) + ") where k matrix",
    "A@A@A@(1+H+A@H+H0)**20",
    "abs((1+H+H0+A@H)**20)",
    "exp((1+H+H0+A@H)**20)",
    "*".join(["(1+H)"] * 140),
    "*".join(f"(1+{x})" for x in ("H", "H0", "A@H", "L@H", "A@H0", "alpha", "beta", "H@W", "tanh(H)", "sin(H)", "M")),
    "abs(exp(exp(exp(100)))-3)*H",
    "abs(sin(exp(exp(20))))*H",
    "1/(exp(exp(1e30))-5)*H",
    "abs(tanh(exp(1e9))-1)*H",
    nested("sqrt(3-sqrt(2-?/10))", 20, "1") + "*H",
    nested("abs(sin(?)-0.5)", 20, "3") + "*H",
    nested("(1+sqrt(?))**3", 12, "2") + "*H",
    "sqrt(" + "*".join(["1234567890123456789012345678901234567891"] * 60) + "+1)*H",
    nested("1/(1+sqrt(?))", 20),
    nested("sqrt(beta-?)", 25),
    nested("abs(beta-exp(?))", 25),
    nested("(L@?)**2", 4),
    nested("(?+1)*(?+2)", 5),
]

#: Runs in a second interpreter: a question that is not answered in time is given up, or the interpreter dies.
JUDGE = """
import json, resource, signal, sys, time
from rdgraph.errors import RdgraphError
from rdgraph.systems.parser import parse

def give_up(*_):
    raise TimeoutError("given up")

resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
signal.signal(signal.SIGVTALRM, give_up)
parse("tanh(A@H)").normal, parse("tanh(A@H)").sympy
for text in json.load(sys.stdin):
    for question in ("normal", "sympy", "latex"):
        signal.setitimer(signal.ITIMER_VIRTUAL, 3)
        signal.setitimer(signal.ITIMER_PROF, 6)
        system, start = parse(text), time.process_time()
        try:
            answer = getattr(system, question)
            answer = "answered" if not callable(answer) or answer() else "empty"
        except RdgraphError as error:
            answer = type(error).__name__
        except BaseException as error:
            answer = f"raised {error!r:.80}"
        print(json.dumps([text, question, answer, time.process_time() - start]), flush=True)
"""


@pytest.fixture(scope="module")
def verdicts() -> dict[tuple[str, str], tuple[str, float]]:
    """Answer and processor time per bomb and question; where the interpreter dies, the next bomb gets a new one."""
    found: dict[tuple[str, str], tuple[str, float]] = {}
    waiting = list(BOMBS)
    while waiting:
        done = subprocess.run(
            [sys.executable, "-c", JUDGE], cwd=ROOT, input=json.dumps(waiting), text=True, stdout=subprocess.PIPE,
            timeout=600, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found |= {(text, question): (answer, seconds) for text, question, answer, seconds in lines}
        finished = sum(question == "latex" for _, question, *_ in lines)
        waiting = waiting[finished + 1 :]
    return found


@pytest.mark.parametrize("question", ["normal", "sympy", "latex"])
@pytest.mark.parametrize("text", BOMBS, ids=lambda text: text[:32])
def test_exhausting_systems_are_answered_or_declined_at_once(
    text: str, question: str, verdicts: dict[tuple[str, str], tuple[str, float]]
) -> None:
    answer, seconds = verdicts.get((text, question), ("did not finish", float("inf")))
    assert answer in ("answered", "NotApplicable")
    assert seconds < QUICK


def test_errors_of_assumptions_are_value_errors() -> None:
    with pytest.raises(AssumptionError):
        parse("beta*H", assume="beta imaginary")
    assert issubclass(AssumptionError, ValueError)


# ---------------------------------------------------------------------- assumptions
def test_contradicting_signs_are_refused() -> None:
    with pytest.raises(AssumptionError, match="expected one sign for beta"):
        parse("beta*H", assume=["beta<0", "beta>0"])
    assert parse("beta*H", assume=["beta real", "beta<0"]).assumptions.sign("beta") == "negative"
    assert parse("beta*H", assume=["beta>=0", "beta positive"]).assumptions.sign("beta") == "positive"


def test_catalogue_names_take_a_clause_and_new_assumptions_replace_old_ones() -> None:
    negative = parse("FB where beta<0, beta channel")
    assert negative.assumptions.sign("beta") == "negative"
    assert negative.coefficients["beta"] == "channel"
    assert parse(negative, assume="beta>0").assumptions.sign("beta") == "positive"

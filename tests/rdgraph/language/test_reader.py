"""The language: round trips, refusals with place and remedy, typing rules, declarations, and texts made to exhaust."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rdgraph.errors import AssumptionError, LanguageError, NotApplicable, RdgraphError
from rdgraph.language.printer import to_text
from rdgraph.language.reader import CHARACTER_REMEDIES, REMEDIES, STRUCTURAL, USUAL_COEFFICIENTS, read_expression
from rdgraph.language.tree import (
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
from rdgraph.systems.canonical.function_identities import is_zero
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.testing import adjacency, coefficient_values, expressions, graph_families, states, systems
from rdgraph.theory.equality import dense_oracle as dense
from rdgraph.vocabulary.functions import FUNCTIONS
from tests.property_examples import examples
from tests.rdgraph.language.equation_texts import nested, quickly


# ---------------------------------------------------------------------- round trips
@pytest.mark.slow
@settings(max_examples=examples(400))
@given(systems())
def test_a_printed_system_reads_back_to_itself(system: System) -> None:
    again = parse(str(system))
    assert again == system
    assert str(again) == str(system)
    assert parse(f" dH/dt=  {system}\n") == system
    assert parse(system) is system
    assert parse(system.text, system.coefficients, assume=system.assumptions.texts()) == system


@settings(max_examples=examples(60))
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
@settings(max_examples=examples(300))
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


@settings(max_examples=examples(150))
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

    @settings(max_examples=examples(count))
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


@settings(max_examples=examples(60))
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


@settings(max_examples=examples(300))
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


@pytest.mark.parametrize(("line", "column"), [("1/0*H", 1), ("H/(1 - 1)", 1), ("H*0**-1", 3), ("H/(2*0)", 1)])
def test_division_by_a_plain_zero_is_refused_where_it_stands(line: str, column: int) -> None:
    with pytest.raises(LanguageError, match="division by zero") as problem:
        read_expression(line)
    assert problem.value.offset == column


def test_divisors_that_are_not_plain_zeros_are_read() -> None:
    for line in ("H/1e-30", "0/2*H", "H/(alpha - alpha)", "2**-2*H", "H/((((9**32)**32)**32) - 1)"):
        read_expression(line)


@pytest.mark.parametrize(
    ("text", "at", "remedy"),
    [
        ("2 H", 2, "factors"),
        ("2H", 1, "factors"),
        ("-alpha H", 7, "factors"),
        ("(H) H", 4, "factors"),
        ("u'v", 2, "factors"),
        ("H +", 3, "syntax"),
        ("%H", 0, "character"),
    ],
)
def test_frequent_mistakes_have_their_remedy(text: str, at: int, remedy: str) -> None:
    with pytest.raises(LanguageError) as problem:
        read_expression(text)
    assert (problem.value.offset, problem.value.remedy) == (at, REMEDIES[remedy])


@pytest.mark.parametrize("word", ["lambda", "def", "if"])
def test_keywords_of_python_are_named(word: str) -> None:
    with pytest.raises(LanguageError) as problem:
        read_expression(f"{word}*H")
    assert word in problem.value.got
    assert problem.value.remedy == REMEDIES["keyword"].format(name=word)


@pytest.mark.parametrize("character", sorted(CHARACTER_REMEDIES))
def test_characters_have_their_remedy(character: str) -> None:
    with pytest.raises(LanguageError) as problem:
        read_expression(f"H{character}H")
    assert problem.value.remedy == CHARACTER_REMEDIES[character]

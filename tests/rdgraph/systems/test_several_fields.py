"""Equations of several fields: how they are read and printed, what they hold, and that one line means what it meant."""

from __future__ import annotations

import copy
import pickle

import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.normal_form import TIME, H, State
from rdgraph.language.printer import to_text
from rdgraph.systems.system import System
from rdgraph.testing import field_systems, systems
from tests.property_examples import examples

SCHNAKENBERG = "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v"
OSCILLATOR = "H'' = -gamma*H - alpha*H' + tanh(A@H)"


def texts(trees: dict[str, sp.Basic]) -> dict[str, str]:
    return {name: to_text(tree) for name, tree in trees.items()}


# ---------------------------------------------------------------------- reading
@pytest.mark.parametrize(
    "source",
    [
        "u' = -L@u + v; v' = u - 2*v",
        "u' = -L@u + v;v' = u - 2*v;",
        "  u ' = -L@u + v ;\n\n  v'= u - 2*v ; ",
        "u' = -L@u + v\nv' = u - 2*v",
        "u' = -L@u\n  + v\n\n\tv' = u\n - 2*v",
        "du/dt = -L@u + v; dv/dt = u - 2*v",
        "du/dt = -L@u + v\n dv / dt = u - 2*v",
        "u' = -L@u + v\ndv/dt = u - 2*v",
        "\n\n  u' = -L@u + v\n\n  v' = u - 2*v\n",
        "\n  u' = -L@u + v;\n  v' = u - 2*v;\n",
        ["u' = -L@u + v", "v' = u - 2*v"],
        ("u' = -L@u + v;", "dv/dt = u - 2*v ; "),
        {"u": "-L@u + v", "v": "u - 2*v"},
        {"u'": "-L@u + v", "v ": "u - 2*v"},
    ],
)
def test_every_way_to_write_two_equations(source: object) -> None:
    system = rd.parse(source)
    assert str(system) == "u' = -L@u + v; v' = u - 2*v" == repr(system)
    assert system.fields == ("u", "v")
    assert system.symbol() == sp.Matrix([[-sp.Symbol("lam"), 1], [1, -2]])


@pytest.mark.parametrize("source", ["H'' = -H", {"H''": "-H"}, ["H'' = -H"], "\nH''\n=\n-H"])
def test_every_way_to_write_a_second_derivative(source: object) -> None:
    system = rd.parse(source)
    assert str(system) == "H'' = -H"
    assert system.fields == ("H", "H'")
    assert texts(system.flow) == {"H": "H'", "H'": "-H"}


@pytest.mark.parametrize("wrong", [[], {}, [3], {"u": 3}, {3: "u"}, ["u' = u", None], 3, None, {"u": None}])
def test_what_is_no_text_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="expected text, a sympy expression or a System"):
        rd.parse(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("dH/dt = -alpha*L@H", "-alpha*L@H"),
        ("H' = -alpha*L@H", "-alpha*L@H"),
        ("-alpha*L@H;", "-alpha*L@H"),
        ("-alpha*L@H\n + beta*H", "-alpha*L@H + beta*H"),
        (["-alpha*L@H"], "-alpha*L@H"),
        ({"H": "-alpha*L@H"}, "-alpha*L@H"),
        ("H' = BS", None),
    ],
)
def test_one_line_is_what_it_was(text: str, plain: str | None) -> None:
    if plain is None:
        with pytest.raises(rd.errors.LanguageError, match="'BS'"):
            rd.parse(text)
        return
    system = rd.parse(text)
    assert system == rd.parse(plain)
    assert str(system) == plain
    assert repr(system) == f"dH/dt = {plain}"
    assert system.is_single
    assert system.fields == ("H",)
    assert system.kinds == ()
    assert not system.latex().startswith(r"\dot")


@settings(max_examples=examples(60), deadline=None)
@given(systems())
def test_one_field_of_another_name_is_the_same_system(system: System) -> None:
    """H renamed to u: one equation of first order, with the tree, the normal form and the structure of the old."""
    H_, u, start, u0 = (rd_field(name) for name in ("H", "u", "H0", "u0"))
    (equation,) = system.equations
    moved = equation.expression.xreplace({H_: u, start: u0})
    other = rd.parse(f"u' = {to_text(moved)}", dict(system.kinds), assume=list(system.assumptions.texts()))
    assert other.is_single
    assert other.fields == ("u",)
    assert other.expression == system.expression
    assert rd.parse(str(other)) == other != system
    try:
        expected = system.structure
    except NotApplicable:
        with pytest.raises(NotApplicable):
            _ = other.structure
    else:
        assert other.normal == system.normal
        assert other.structure == expected


def rd_field(name: str) -> sp.Basic:
    return rd.parse("H' = H; u' = H0 + u0 + u").equations[0].expression.func(name, "field")


def test_declarations_of_every_line_hold_for_all() -> None:
    system = rd.parse("u' = k*u + B@v where k channel, B symmetric; v' = k*g(v) where g = H**2, k < 0, B stochastic")
    assert str(system) == ("u' = k*u + B@v; v' = k*g(v) where g = H**2, k channel, B symmetric stochastic, k negative")
    assert system.coefficients == {"k": "channel"}
    assert system.operators.facts("B") == ("symmetric", "stochastic")
    assert rd.parse(str(system)) == system
    same = rd.parse(
        ["u' = k*u + B@v", "v' = k*g(v) where g = H**2"], {"k": "channel"}, assume="k<0",
        operators={"B": "symmetric stochastic"},
    )  # fmt: skip
    assert same == system


def test_what_does_not_occur_is_left_out() -> None:
    system = rd.parse("u' = -u where B antisymmetric, k node, mu < 0, g = H**2")
    assert str(system) == "u' = -u"
    assert system.is_single
    assert rd.parse("u' = -u", operators={"B": "symmetric"}) == rd.parse("u' = -u")


def test_diffusivities_of_the_fields_are_usual_letters() -> None:
    system = rd.parse("u' = -Du*L@u; v' = -D_v*L@v where Du < D_v, D_v <= 3")
    assert system.coefficients == {"D_v": "scalar", "Du": "scalar"}
    assert system.kinds == ()
    assert rd.parse(str(system)) == system
    assert [str(relation) for relation in system.assumptions.relations] == ["Du < D_v", "D_v <= 3"]
    assert rd.parse("u' = -Du*L@u where Du real").assumptions.sign("Du") == "real"
    assert rd.parse(rd.parse("u' = -Du*L@u"), assume="Du<=0").assumptions.sign("Du") == "nonpositive"
    with pytest.raises(rd.errors.AssumptionError, match=r"contradict|no values"):
        rd.parse("u' = -Du*L@u where Du < 1, 2 < Du")
    with pytest.raises(rd.errors.LanguageError, match="unknown name 'Du'"):
        rd.parse("-Du*L@H")


def test_fields_may_bear_the_names_of_usual_letters() -> None:
    system = rd.parse("a' = -a*b + Da*a; b' = a - mu*b")
    assert system.fields == ("a", "b")
    assert set(system.coefficients) == {"Da", "mu"}
    assert system.normals["a"] == State("a") * system.algebra.symbols["Da"] - State("a") * State("b")
    assert rd.parse("Du' = -Du; u' = Du").coefficients == {}


@pytest.mark.parametrize("name", ["eta", "theta", "rho", "sigma", "omega"])
def test_a_function_may_be_called_by_a_greek_letter(name: str) -> None:
    system = rd.parse(f"-L@H + {name}(H) where {name} = H**2")
    assert str(system) == f"-L@H + {name}(H) where {name} = H**2"
    assert rd.equivalent(system, "-L@H + H**2")
    assert rd.parse(str(system)) == system
    assert rd.parse(f"{name}*H").coefficients == {name: "scalar"}
    with pytest.raises(rd.errors.LanguageError, match="a letter of the equation"):
        rd.parse(f"{name}(H) where {name} = H**2, {name} scalar")
    with pytest.raises(rd.errors.LanguageError, match=f"{name} without brackets"):
        rd.parse(f"{name}*{name}(H) where {name} = H**2")
    with pytest.raises(rd.errors.LanguageError, match="unknown name"):
        rd.parse(f"alpha*{name}(H) where {name} = H**2").replace(alpha=name)
    with pytest.raises(rd.errors.LanguageError, match=f"'{name}'"):
        rd.parse(f"g({name}(H)) where g = {name}*H, {name} = H**2")


# ---------------------------------------------------------------------- what a system holds
def test_first_order_right_hand_sides() -> None:
    system = rd.parse("u'' = -u - alpha*u' + v; v' = u' - v")
    assert system.fields == ("u", "u'", "v")
    assert [(e.field, e.order, e.left) for e in system.equations] == [("u", 2, "u''"), ("v", 1, "v'")]
    assert texts(system.flow) == {"u": "u'", "u'": "-u - alpha*u' + v", "v": "u' - v"}
    alpha = sp.Symbol("alpha")
    assert system.symbol() == sp.Matrix([[0, 1, 0], [-1, -alpha, 1], [0, 1, -1]])


def test_time_is_a_scalar_and_may_be_frozen() -> None:
    system = rd.parse("u' = -alpha*exp(-t)*L@u + beta*sin(omega*t)")
    assert not system.is_autonomous
    assert set(system.coefficients) == {"alpha", "beta", "omega"}
    assert system.normals["u"].has(TIME)
    frozen = system.replace(t=0)
    assert frozen.is_autonomous
    assert frozen.is_single
    assert rd.equivalent(frozen, "-alpha*exp(-0)*L@H + beta*sin(0*omega)")
    for ask in (System.symbol, lambda s: s.generator_matrix):
        with pytest.raises(NotApplicable, match=r"autonomous .* depends on the time t; freeze the time with replace"):
            ask(system)
    with pytest.raises(InvalidArgument, match="expected coefficients among"):
        frozen.replace(t=1)


@pytest.mark.parametrize(
    ("text", "drift", "factor"),
    [
        ("u' = -L@u + sigma*xi", "-L@u", "sigma"),
        ("u' = -L@u + sigma*u*xi", "-L@u", "sigma*u"),
        ("u' = xi", "0", "1"),
        ("u' = xi*3 - u", "-u", "3"),
        ("u' = -(u + xi)", "-u", "-1"),
        ("u' = -u - sigma*xi/2", "-u", "-(sigma/2)"),
        ("u' = -u + xi*u - 2*xi", "-u", "u - 2"),
        ("u' = M*xi - u + k*xi*u where k channel", "-u", "M + k*u"),
        ("u'' = -u + t*xi", "-u", "t"),
        ("u' = -u + g(u)*xi where g = tanh(H)", "-u", "tanh(u)"),
    ],
)
def test_drift_and_noise(text: str, drift: str, factor: str) -> None:
    system = rd.parse(text)
    state = system.fields[-1]
    assert system.is_noisy
    assert not system.is_single
    assert texts(system.flow)[state] == drift
    assert texts(system.noise) == {state: factor}
    assert rd.parse(str(system)) == system
    assert "xi" not in system.coefficients


def test_every_equation_has_noise_of_its_own() -> None:
    system = rd.parse("u' = -u + sigma*xi; v' = u; w' = v - mu*w*xi")
    assert texts(system.noise) == {"u": "sigma", "w": "-(mu*w)"}
    assert rd.parse("u' = -u; v' = u").noise == {}


def test_further_operators() -> None:
    system = rd.parse("u' = B@A@u - A@B@u; v' = C@v where B antisymmetric, C operator")
    assert system.operators.names == ("B", "C")
    assert system.operators.facts("C") == ("operator",)
    assert system.coefficients == {}
    assert system.coupling.linear["u", "u"] == {("A", "B"): -1, ("B", "A"): 1}
    with pytest.raises(NotApplicable, match="no symbol in lam because the operator B"):
        system.symbol()
    told = rd.parse(system, operators={"C": "symmetric signed"})
    assert told.operators.facts("C") == ("symmetric", "signed")
    assert rd.parse(told, operators={"C": "operator"}) == system


def test_a_sympy_expression_with_a_further_operator() -> None:
    tree = sp.MatrixSymbol("B", 3, 3) * sp.MatrixSymbol("H", 3, 2)
    system = rd.parse(tree, operators={"B": "symmetric"})
    assert system == rd.parse("B@H where B symmetric")
    with pytest.raises(rd.errors.LanguageError, match="'B'"):
        rd.parse(tree)


# ---------------------------------------------------------------------- systems of one equation only
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("u' = -u; v' = u", "has the fields u, v"),
        ("u'' = -u", "is of second order in u"),
        ("-t*H", "depends on the time t"),
        ("-H + xi", "is driven by the noise xi"),
        ("B@H where B symmetric", "has the further operators B"),
        ("(B - B)@H where B symmetric", "has the further operators B"),
        ("0*t*H", "depends on the time t"),
        ("u'' = -t*u + xi; v' = B@v where B signed",
         "has the fields u, v and is of second order in u and depends on the time t and is driven by the noise xi "
         "and has the further operators B"),
    ],
)  # fmt: skip
def test_more_than_one_equation_says_why(text: str, reason: str) -> None:
    system = rd.parse(text)
    assert not system.is_single
    for ask in ("expression", "normal", "structure", "generator_symbol", "source_symbol"):
        with pytest.raises(NotApplicable) as caught:
            getattr(system, ask)
        expected = "expected one autonomous equation of first order in A alone"
        assert str(caught.value) == f"{expected}, got {system.text}, which {reason}"
    assert not system.has_response


def test_the_one_equation_is_in_the_letter_h() -> None:
    system = rd.parse("u' = -L@u + g(u) + u0 where g = H**2")
    assert to_text(system.expression) == "-L@H + H**2 + H0"
    assert system.normal.has(H)
    assert system.spelling is not None
    assert to_text(system.spelling.expression) == "-L@H + g(H) + H0"


# ---------------------------------------------------------------------- other systems made of one
def test_values_and_declarations() -> None:
    system = rd.parse(SCHNAKENBERG)
    assert str(system.replace(a="2*b", Dv=40)) == "u' = 2*b - u + u**2*v - Du*L@u; v' = b - u**2*v - 40*L@v"
    told = rd.parse(system, {"Dv": "channel"}, assume="a<b")
    assert str(told) == f"{SCHNAKENBERG} where Dv channel, a < b"
    assert rd.parse(str(told)) == told
    assert rd.parse(system) is system


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (SCHNAKENBERG, {"kinds": ["u"]}, "'u', a field of"),
        (SCHNAKENBERG, {"kinds": {"v0": "channel"}}, "'v0', a field of"),
        (SCHNAKENBERG, {"operators": {"u": "symmetric"}}, "'u', a field of"),
        (SCHNAKENBERG, {"operators": {"a": "symmetric"}}, "'a', a coefficient of"),
        ("B@H where B signed", {"kinds": ["B"]}, "'B', an operator of"),
        (SCHNAKENBERG, {"kinds": ["B"], "operators": {"B": "signed"}}, "'B', an operator of"),
    ],
)
def test_declarations_of_letters_that_are_taken(text: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(rd.errors.LanguageError) as caught:
        rd.parse(rd.parse(text), **options)  # type: ignore[arg-type]
    assert words in caught.value.got


def test_systems_are_values() -> None:
    for text in (SCHNAKENBERG, OSCILLATOR, "u' = t*B@u + xi where B signed"):
        system = rd.parse(text)
        again = pickle.loads(pickle.dumps(system))
        assert again == system == copy.deepcopy(system)
        assert hash(again) == hash(system)
        assert again.normals == system.normals
        assert pickle.loads(pickle.dumps(system.coupling)) == system.coupling
    assert rd.parse("u' = -u; v' = -v") != rd.parse("v' = -v; u' = -u")


# ---------------------------------------------------------------------- print
def test_latex() -> None:
    assert rd.parse(SCHNAKENBERG).latex() == (
        r"\begin{aligned} \dot{\mathbf{u}} &= a - \mathbf{u} + \mathbf{u}^{\circ 2} \odot \mathbf{v} "
        r"- D_{u} \mathbf{L} \mathbf{u} \\ \dot{\mathbf{v}} &= b - \mathbf{u}^{\circ 2} \odot \mathbf{v} "
        r"- D_{v} \mathbf{L} \mathbf{v} \end{aligned}"
    )
    assert rd.parse("H'' = -gamma*H' + H0 - H0'").latex() == (
        r"\ddot{\mathbf{H}} = -\gamma \dot{\mathbf{H}} + \mathbf{H}(0) - \dot{\mathbf{H}}(0)"
    )
    assert rd.parse("rho_1' = -exp(-t)*B@rho_1 where B signed")._repr_latex_() == (
        r"$\dot{\mathbf{\rho}_{1}} = -\exp\left(-t\right) \mathbf{B} \mathbf{\rho}_{1}$"
    )
    assert rd.parse("D_u*H where D_u scalar").latex() == r"D_{u} \mathbf{H}"
    assert rd.parse("Delta*H where Delta scalar").latex() == r"\Delta \mathbf{H}"


@settings(max_examples=examples(250), deadline=None)
@given(st.sampled_from([None, True, False]).flatmap(lambda linear: field_systems(linear=linear)))
def test_every_system_prints_and_reads_back(system: System) -> None:
    again = rd.parse(str(system))
    assert again == system
    assert str(again) == str(system)
    assert (again.fields, again.kinds, again.operators) == (system.fields, system.kinds, system.operators)
    assert system.latex()
    lines = [f"{equation}" for equation in system.equations]
    clause = str(system).removeprefix(system.text if system.text in str(system) else "; ".join(lines))
    joined = "\n".join(lines) + clause if len(lines) > 1 else str(system)
    assert rd.parse(joined) == system

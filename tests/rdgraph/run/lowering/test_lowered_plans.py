"""Plans of lowered fields: what is proved is what runs, products counted and shared, source that runs alone."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
import torch
from hypothesis import HealthCheck, given, reject, settings

import rdgraph as rd
from rdgraph.language.reader import Vocabulary, read_expression
from rdgraph.language.tree import Kind, Name
from rdgraph.testing import systems
from tests.property_examples import examples
from tests.rdgraph.run.lowering.lowering_cases import CHANNELS, NODES, operator, oracle, random, values_for


# ---------------------------------------------------------------------- what is proved is what runs
def normal_of_plan(system: rd.System) -> tuple[sp.Basic, sp.Expr]:
    """The steps of the plan, read as equations and put into each other: the tree that is run, and its normal form."""
    field = rd.lower(system, operator(), values_for(system, NODES, CHANNELS))
    vocabulary, trees = Vocabulary.standard(dict(system.letters)), {}
    for step in field.plan.steps:
        name, text = step.split(" = ", 1)
        tree = read_expression(text, vocabulary).xreplace(trees)
        trees[Name(name, Kind.FIELD)] = tree
        vocabulary = vocabulary.extended({name: Kind.FIELD})
    return tree, system.algebra.normal(tree)


@pytest.mark.parametrize("name", list(rd.catalogue.single))
def test_the_plan_has_the_normal_form_of_the_catalogued_system(name):
    assert normal_of_plan(rd.catalogue[name])[1] == rd.catalogue[name].normal


@given(systems())
@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_the_plan_has_the_normal_form_of_the_system(system):
    try:
        expected, (tree, found) = system.normal, normal_of_plan(system)
    except rd.errors.NotApplicable:  # too large to expand, or constants beyond double precision
        reject()
    if found != expected:  # fractions have no unique normal form
        assert rd.equivalent(system.with_expression(tree), system).outcome.startswith("proved")


# ---------------------------------------------------------------------- the plan
@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("BS", 2), ("F", 1), ("AC", 1), ("Z", 1), ("ST", 1), ("FB", 1), ("FB*", 1), ("diffusion", 1),
        ("A@A@A@H - A@A@H + A@H", 3),
        ("A**2@H + tanh(A@A@H)", 2),
        ("A@H - A@H + H", 0),
        ("A@(H + H**2)", 1),
        ("A@H + A@H0 + A@H**2", 1),
        ("tanh(A@H)*(A@H) - L@H", 1),
        ("-L@H + A@A@H0", 2),
        ("H - H", 0),
        ("((A - A@A)**3)@H", 6),
        ("(H + A@H)**4", 1),
        ("tanh(H + A@H + A@A@H)", 2),
        ("(H + A@H)*(H0 - A@H)*(1 - L@H)", 1),
        ("A@(M*H + M*H0)", 1),
        ("tanh(A@(M*H + M*H0)) + A@(M*H + M*H0)", 1),
        ("A@(H@W) + A@(H0@W)", 1),
        ("A@H@W - (A@H)@W", 0),
        ("(A@M)*H + A@(M + 1)*H0", 2),
        ("(1 - H + A@H)**32*(1 + H0*H + A@H0)**32", 2),
        ("A**32@A**32@A**32@H", 96),
    ],
)  # fmt: skip
def test_products_are_counted_and_shared(text, products, monkeypatch):
    system = rd.parse(text)
    op = operator()
    field = rd.lower(system, op, values_for(system, NODES, CHANNELS)).bind(random(NODES, CHANNELS))
    assert field.plan.products == products
    calls = []
    product = rd.graphs.Operator.product

    def counted(self, *args, **kwargs):
        calls.append(1)
        return product(self, *args, **kwargs)

    monkeypatch.setattr(rd.graphs.Operator, "product", counted)
    field(0.0, random(NODES, CHANNELS))
    assert len(calls) == products


@pytest.mark.parametrize(
    ("text", "mixes"),
    [
        ("CGNN", 1),
        ("GRAFF", 1),
        ("tanh(H@W) + A@(H@W)", 1),
        ("tanh((H + A@H)@W) + (H + A@H)@W", 1),
        ("H@(W + W@W)", 1),
        ("(2*H)@W + H@W", 1),
        ("H@(W - W)", 0),
        ("tanh(H@W) + tanh(A@H@W) + H@W + A@H@W", 2),
    ],
)
def test_mixings_are_counted_and_shared(text, mixes):
    system = rd.parse(text)
    field = rd.lower(system, operator(), values_for(system, NODES, CHANNELS))
    taken = field.source.count(" @ W") + field.source.count(" @ (") - field.source.count("W @ W")
    assert field.plan.mixes == taken == mixes


@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
@pytest.mark.parametrize(
    "text",
    [
        "(1 - 0.1*H + A@H)**9*(1 + H0*H + A@H0)**9", "A**32@A**32@H", "tanh(tanh(tanh(tanh(tanh(tanh(A@H))))))",
        "(I + alpha*A)**32@(H + beta*H0)/2**32", "H@(W@(W - alpha*W/3) + 2*W)@W - beta*A@(H@W)",
    ],
)  # fmt: skip
def test_systems_that_are_not_expanded_run_as_the_dense_interpreter(text, normalisation):
    system, op = rd.parse(text), operator(normalisation)
    values = values_for(system, NODES, CHANNELS)
    H, H0 = random(NODES, CHANNELS, seed=50), random(NODES, CHANNELS, seed=51)
    expected = oracle(system, op.dense().numpy(), values, H, H0)
    found = rd.lower(system, op, values).bind(H0)(0.0, H).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_the_plan_prints_its_steps():
    field = rd.lower("BS", operator(), {"alpha": 1.0, "beta": 1.0})
    assert str(field.plan).splitlines() == [
        "dH/dt = -alpha*L@H + beta*(A@H - A@A@H)    (2 sparse products)",
        "  x1 = A@H",
        "  dH = (-beta)*(A@x1) + (-alpha)*H + (alpha + beta)*x1",
    ]


@pytest.mark.parametrize("name", ["BS", "F", "ST", "GRAFF", "GRAND++"])
def test_the_source_runs_on_its_own(name):
    system, op = rd.parse(name), operator()
    values = values_for(system, NODES, CHANNELS)
    H, H0 = random(NODES, CHANNELS, seed=1), random(NODES, CHANNELS, seed=2)
    field = rd.lower(system, op, values).bind(H0)
    alone: dict = {}
    exec(field.source, alone)
    shaped = field.coefficients
    names = field._stages.names
    numbers = alone["coefficients"](*(shaped[n] for n in names))
    known = {"H": H, "H0": H0, "A": alone["plain"](op.dense()), **shaped}
    arguments = [known[a] for a in field._stages.field.arguments]
    torch.testing.assert_close(alone["field"](0.0, *arguments, *numbers), field(0.0, H))
    assert "import" not in field.source.replace("import torch", "", 1)


def test_coefficients_may_have_the_names_the_source_uses():
    system = rd.parse("-x1*L@H + c0*H + torch*H**2", {"x1": "scalar", "c0": "scalar", "torch": "scalar"})
    H = random(NODES, 2)
    found = rd.lower(system, operator(), {"x1": 0.5, "c0": 2.0, "torch": 3.0})(0.0, H)
    expected = -0.5 * (H - operator().dense() @ H) + 2 * H + 3 * H**2
    torch.testing.assert_close(found, expected)

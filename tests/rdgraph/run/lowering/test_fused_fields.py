"""Fields by generated kernels, in Triton's interpreter, against the same fields by torch's own operations."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_INTERPRET", "1")

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import rdgraph as rd
from rdgraph.graphs.kernels import devices
from rdgraph.graphs.kernels.row_order import Rows
from rdgraph.graphs.operator import Pattern
from rdgraph.run.lowering import kernel_route
from rdgraph.run.solvers import steppers
from tests.equations import random_numbers as random
from tests.property_examples import examples

pytest.importorskip("triton", reason="Triton is not installed")

pytestmark = pytest.mark.skipif(
    os.environ["TRITON_INTERPRET"] != "1", reason="states of a CPU go through the interpreter alone"
)

NODES, MEMBERS = 7, 2
EQUATIONS = [
    "F", "AC", "Z",
    "-alpha*L@H + beta*tanh(H)",
    "-alpha*L@H + beta*tanh(H)*(1 - H) + H0",
    "-alpha*L@H + beta*H0*H/(1 + H**2) - H**3",
    "A@H - H + 2*sin(H)*cos(H0) + beta",
    "-alpha*exp(-t)*L@H + beta*sigmoid(H) - softplus(H0 - 2*H)",
    "alpha*A@H + beta*abs(H)*relu(H) + exp(-H**2) + sqrt(1 + H**2) + (2 + H**2)**(-3)",
]  # fmt: skip


@pytest.fixture
def graph() -> rd.Graph:
    return rd.generators.barabasi_albert(NODES, 2, seed=1)


@pytest.fixture
def arranged(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Rows as the kernels walk them, which a CPU does without."""
    monkeypatch.setattr(Pattern, "row_tensors", property(lambda p: Rows(p.indptr, p.indices).arrange(3, 4).tensors))
    return monkeypatch


def fuse(monkeypatch: pytest.MonkeyPatch, is_fused: bool) -> None:
    """Send every field and every sum of stages one way."""
    for module in (kernel_route, steppers):
        monkeypatch.setattr(module, "use_fused", lambda x: is_fused)
    monkeypatch.setattr(kernel_route, "can_fuse", lambda device: is_fused)


class Problem:
    """Inputs of a field that want gradients, and its slope at them."""

    def __init__(self, graph: rd.Graph, equation: str, width: int = 3, kind: str = "scalar", shared: bool = False):
        letters = {name: kind for name in ("alpha", "beta") if name in equation or len(equation) < 3}
        self.system = rd.parse(equation, letters) if len(equation) > 2 else rd.parse(rd.parse(equation).text, letters)
        self.operator = graph.operator("row", dtype=torch.float64)
        own = (width,) if kind == "channel" else ()
        self.names = [name for name in letters if name in self.system.letters]
        lead = () if shared else (MEMBERS,)
        edges = self.operator.num_edges
        self.inputs = [
            random(MEMBERS, NODES, width, seed=1),
            random(MEMBERS, NODES, width, seed=2),
            random(*lead, edges, seed=3),
            *(random(*lead, *own, seed=4 + k) for k in range(len(self.names))),
        ]

    def fresh(self) -> list[Tensor]:
        return [x.clone().requires_grad_(True) for x in self.inputs]

    def field(self, inputs: list[Tensor]) -> rd.run.VectorField:
        _, H0, weights, *values = inputs
        operator = self.operator.with_weights(weights)
        field = rd.lower(self.system, operator, dict(zip(self.names, values, strict=True)), batch=(MEMBERS,))
        return field.bind(H0) if field.uses_initial else field

    def slope(self, *inputs: Tensor) -> Tensor:
        time = None if self.system.is_autonomous else 0.3
        return self.field(list(inputs))(time, inputs[0])

    def gradients(self) -> list[Tensor]:
        """The slope, and what it sends to every input."""
        inputs = self.fresh()
        slope = self.slope(*inputs)
        g = random(*slope.shape, seed=9)
        return [slope, *torch.autograd.grad(slope, inputs, g, allow_unused=True, materialize_grads=True)]


def agree(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", ["scalar", "channel"])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_values_and_gradients_are_those_of_torch(graph, arranged, equation, kind):
    problem = Problem(graph, equation, kind=kind)
    found = []
    for is_fused in (False, True):
        fuse(arranged, is_fused)
        found.append(problem.gradients())
    agree(found[1], found[0])


def test_weights_and_coefficients_that_all_members_share(graph, arranged):
    problem = Problem(graph, "-alpha*L@H + beta*tanh(H)*(1 - H) + H0", shared=True)
    found = []
    for is_fused in (False, True):
        fuse(arranged, is_fused)
        found.append(problem.gradients())
    agree(found[1], found[0])


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (3,), (4,), (0, 4), (0, 2)])
def test_only_some_inputs_want_a_gradient(graph, arranged, wanted):
    """State, start, weights, alpha, beta: each has its gradient for every choice of the others."""
    problem = Problem(graph, "-alpha*L@H + beta*H0*tanh(H)")
    found = []
    for is_fused in (False, True):
        fuse(arranged, is_fused)
        inputs = [x.clone().requires_grad_(k in wanted) for k, x in enumerate(problem.inputs)]
        slope = problem.slope(*inputs)
        asked = [inputs[k] for k in wanted]
        found.append([slope, *torch.autograd.grad(slope, asked, random(*slope.shape, seed=9))])
    agree(found[1], found[0])


def test_a_start_that_the_state_is_made_of(graph, arranged):
    """H0 acts on the slope by itself and through the state; second derivatives count both once."""
    problem = Problem(graph, "-alpha*L@H + beta*H0*H*(1 - H)")
    found = []
    for is_fused in (False, True):
        fuse(arranged, is_fused)
        _, H0, weights, *values = problem.fresh()
        slope = problem.slope(2 * H0 + H0**2, H0, weights, *values)
        (first,) = torch.autograd.grad(slope.square().sum(), [H0], create_graph=True)
        found.append([first, *torch.autograd.grad(first.square().sum(), [H0, weights, *values])])
    agree(found[1], found[0])


@pytest.mark.slow
@pytest.mark.parametrize("equation", ["F", "-alpha*L@H + beta*tanh(H)*(1 - H) + H0"])
def test_derivatives_of_both_orders(arranged, equation):
    problem = Problem(rd.generators.path(NODES), equation, width=1)
    fuse(arranged, True)
    assert gradcheck(problem.slope, problem.fresh(), fast_mode=True)
    assert gradgradcheck(problem.slope, problem.fresh(), fast_mode=True)


def test_kernels_compute_it_and_keep_two_states(graph, arranged):
    """The generated kernels are what runs, once forth and once back, and a gradient keeps H and A@H alone."""
    from rdgraph.graphs.kernels.entry_kernels import EntryKernels

    calls, kept = [], set()
    for name in ("value", "gradient"):
        own = getattr(EntryKernels, name)
        arranged.setattr(
            EntryKernels, name, lambda *args, own=own, name=name, **kwargs: calls.append(name) or own(*args, **kwargs)
        )
    fuse(arranged, True)
    problem = Problem(graph, "F")
    inputs = problem.fresh()

    def note(x: Tensor) -> Tensor:
        if x.shape == inputs[0].shape:
            kept.add(x.data_ptr())
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        slope = problem.slope(*inputs)
    slope.sum().backward()
    assert calls == ["value", "gradient"]
    assert len(kept) == 2
    assert inputs[0].data_ptr() in kept


def test_a_prepared_field_stacks_its_coefficients_once(graph, arranged):
    fuse(arranged, True)
    problem = Problem(graph, "F")
    inputs = problem.fresh()
    field = problem.field(inputs).prepared()
    assert ("stack", 0) in field._prepared
    twice = field(None, field(None, inputs[0]))
    found = torch.autograd.grad(twice.sum(), [inputs[0], *inputs[2:]])
    fuse(arranged, False)
    field = problem.field(inputs).prepared()
    assert ("stack", 0) not in field._prepared
    agree(list(found), list(torch.autograd.grad(field(None, field(None, inputs[0])).sum(), [inputs[0], *inputs[2:]])))


@pytest.mark.parametrize(
    "equation",
    [
        "BS", "alpha*L@H + beta*H0", "-L@H + beta*tanh(A@H)", "-L@H + beta*H*(A@H)", "-L@L@H + beta*tanh(H)",
        "-L@H + tanh(beta*H)", "beta*tanh(H)", "-L@tanh(H) + H**2", "GRAFF",
        "u' = u*v - L@u; v' = -L@v",
    ],
)  # fmt: skip
def test_other_equations_stay_where_they_were(graph, equation):
    from rdgraph.run.lowering.lowering_stages import lowered

    assert lowered(rd.parse(equation), False, "row").fused is None


def test_coefficients_of_nodes_and_the_laplacian_of_degrees_stay_where_they_were():
    from rdgraph.run.lowering.lowering_stages import lowered

    assert lowered(rd.parse("-L@H + beta*tanh(H)", {"beta": "node"}), False, "row").fused is None
    assert lowered(rd.parse("-L@H + beta*tanh(H)"), True, "none").fused is None
    assert lowered(rd.parse("-L@H + beta*tanh(H)"), False, "row").fused is not None


def test_small_states_and_those_of_a_cpu_stay_where_they_were():
    assert not devices.use_fused(torch.empty(1 << 21))
    assert not devices.can_fuse(torch.device("cpu"))


def test_what_is_not_finite_spreads_as_in_torch(graph, arranged):
    problem = Problem(graph, "-alpha*L@H + beta*H/(1 + H) + relu(H) + abs(H)*H**(-2)")
    found = []
    H = problem.inputs[0]
    H[0, 0, 0], H[1, 1, 1], H[0, 2, 2], H[1, 3, 0] = torch.nan, torch.inf, -1.0, 0.0
    for is_fused in (False, True):
        fuse(arranged, is_fused)
        with np.errstate(all="ignore"):
            found.append(problem.gradients())
    for one, two in zip(*found, strict=True):
        if one.shape == H.shape:
            torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-10, equal_nan=True)
        else:  # sums in another order: of two infinities one may be left, or NaN
            assert torch.equal(one.isfinite(), two.isfinite())


# ---------------------------------------------------------------------- any expression
LEAVES = st.sampled_from(["H", "H0", "2", "(1 - H)", "(H/3)", "(0.7*H0 - 1)"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    calls = st.sampled_from(["tanh", "sigmoid", "sin", "cos", "softplus", "relu", "abs"])
    return st.one_of(
        st.builds("({}*{})".format, inner, inner),
        st.builds("({} - 0.5*{})".format, inner, inner),
        st.builds("({}/(2 + ({})**2))".format, inner, inner),
        st.builds("({})**{}".format, inner, st.sampled_from([2, 3])),
        st.builds("{}({})".format, calls, inner),
        st.builds("exp(-({})**2)".format, inner),
        st.builds("sqrt(1 + ({})**2)".format, inner),
        st.builds("(3 + sin({}))**{}".format, inner, st.sampled_from([-1, -2, 5])),
    )


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.recursive(LEAVES, _grown, max_leaves=5), min_size=1, max_size=3))
def test_any_expression_has_the_values_and_gradients_of_torch(values):
    equation = "alpha*A@H + tanh(H) + " + " + ".join(f"beta*{value}" for value in values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pattern, "row_tensors", property(lambda p: Rows(p.indptr, p.indices).arrange(3, 4).tensors))
        problem = Problem(rd.generators.path(NODES), equation, width=2)
        found = []
        for is_fused in (False, True):
            fuse(patch, is_fused)
            found.append(problem.gradients())
    for one, two in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9 * float(1 + two.detach().abs().max()))


def test_weights_changed_in_place_are_transposed_again(graph, arranged):
    """A prepared field shares the transpose between evaluations, as long as it is that of its weights."""
    problem = Problem(graph, "F")
    found = []
    for is_fused in (False, True):
        fuse(arranged, is_fused)
        inputs = [x.clone() for x in problem.inputs]
        H = inputs[0].requires_grad_(True)
        field = problem.field(inputs).prepared()
        gradients = []
        for factor in (1.0, 3.0):
            inputs[2].mul_(factor)
            gradients += [*torch.autograd.grad(field(None, field(None, H)).sum(), [H])]
        found.append(gradients)
    agree(found[1], found[0])

"""`rd.conform`: layers that compute their equation, layers that do not, and the reports on both."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import InvalidArgument, LanguageError, NotApplicable
from rdgraph.infer.layers import layer_check
from rdgraph.infer.layers.coefficient_fit import LEAST
from rdgraph.infer.layers.probe_graphs import ProbeGraph, probe_graphs
from tests.rdgraph.infer.layers.layers import Gated, Mixed, mean, neighbours, released_filter_bank, symmetric_mean


# ---------------------------------------------------------------------- conforms
def test_the_filter_bank_as_released_is_found_out() -> None:
    found = rd.conform(released_filter_bank, "-alpha*L@H + beta*L@H", values={"alpha": 0.5, "beta": 0.25})
    assert (found.conforms, found.outcome, found.agreement) == (False, "differs", None)
    assert found.hints[0].text == "I + A in place of L"
    assert found.equation == "-alpha*L@H + beta*(I + A)@H"
    assert found.term == "beta*L@H"
    witness = found.witness
    assert witness is not None
    assert witness.graph.num_nodes == 2
    own = mean(torch.tensor(witness.state), torch.tensor(witness.graph.edge_index)).numpy()
    assert np.allclose(witness.equation, -0.25 * (witness.state - own))
    assert np.allclose(witness.layer, -0.5 * (witness.state - own) + 0.25 * (witness.state + own))


def plain_laplacian(H: Tensor, A: Tensor) -> Tensor:
    return -0.7 * (H - A @ H) + 0.3 * torch.sigmoid(A @ H) * (A @ H - H)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), [("alpha", "beta"), ("0.7", "0.3")])
def test_identity_minus_adjacency_is_no_laplacian_without_a_normalisation(alpha: str, beta: str) -> None:
    found = rd.conform(plain_laplacian, f"-{alpha}*L@H + {beta}*sigmoid(A@H)*(A@H - H)")
    assert not found.conforms
    assert "I - A in place of L" in [hint.text for hint in found.hints]
    assert found.reading.startswith("no normalisation without self-loops")
    witness = found.witness
    assert witness is not None
    H, A = witness.state, witness.graph.adjacency
    assert np.allclose(witness.layer, plain_laplacian(torch.tensor(H), torch.tensor(A)).numpy())
    laplacian = np.diag(A.sum(1)) - A
    gate = 1 / (1 + np.exp(-A @ H))
    assert np.allclose(witness.equation, -0.7 * laplacian @ H + 0.3 * gate * (A @ H - H))


@pytest.mark.slow
def test_the_witness_belongs_to_the_reading_of_the_line_that_the_layer_computes() -> None:
    def layer(H: Tensor, A: Tensor) -> Tensor:
        return 2 * torch.tanh(A @ H) - H

    found = rd.conform(layer, "-0.25*H*(A@H) - L@H")
    assert found.equation is not None
    assert found.hints == ()
    assert found.reading.startswith("no normalisation without self-loops")
    witness = found.witness
    assert witness is not None
    H, A = witness.state, witness.graph.adjacency
    assert np.allclose(witness.equation, -0.25 * H * (A @ H) - (np.diag(A.sum(1)) - A) @ H)


def test_fitted_numbers_are_fractions_and_the_agreement_is_a_proof() -> None:
    found = rd.conform(released_filter_bank, "-alpha*L@H + beta*(H + A@H)")
    assert found
    assert found.reading == "row normalisation without self-loops, alpha = 0.5, beta = 0.25"
    worth = found.agreement
    assert worth is not None
    assert worth.is_proof
    sizes = [1 + 2 * g.num_nodes for g in probe_graphs(weighted=False)]
    assert (worth.degree, worth.dimension, worth.rank, worth.words) == (1, sum(sizes), sum(sizes), 1)
    assert "a proof up to rounding" in str(found)


def test_parameters_of_the_layer_are_named() -> None:
    found = rd.conform(Gated(), "alpha*A@H", normalisation="row")
    assert found
    assert "alpha = sigmoid(gate of the layer)" in found.reading
    layer = Mixed()
    found = rd.conform(layer, "tanh(H@V + A@H@W + b)", kinds={"V": "matrix", "b": "channel"})
    assert found
    assert "V = V of the layer, W = W of the layer, b = b of the layer" in found.reading
    assert found.agreement is not None
    assert not found.agreement.is_proof
    assert str(found.agreement).startswith("agrees on ")


@pytest.mark.parametrize(("first", "second"), [("alpha", "beta"), ("beta", "alpha")])
def test_a_parameter_of_the_same_name_comes_before_one_minus_another(first: str, second: str) -> None:
    class Gate(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_parameter(first, torch.nn.Parameter(torch.tensor(0.7)))
            self.register_parameter(second, torch.nn.Parameter(torch.tensor(0.3)))

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            around = mean(x, edge_index)
            return -self.alpha * (x - around) + self.beta * torch.sigmoid(x) * (around - x)

    found = rd.conform(Gate(), "-alpha*L@H + beta*sigmoid(H)*(A@H - H)")
    assert found
    assert "alpha = alpha of the layer, beta = beta of the layer" in found.reading


@pytest.mark.slow
@pytest.mark.parametrize("equation", ["0.5*(A@H - H) + 0.7*H*(1 - H)", "alpha*(A@H - H) + beta*H*(1 - H)"])
def test_a_layer_that_is_right_on_undirected_graphs_has_a_directed_witness(equation: str) -> None:
    def layer(x: Tensor, edge_index: Tensor) -> Tensor:
        return 0.5 * (symmetric_mean(x, edge_index) - x) + 0.7 * x * (1 - x)

    found = rd.conform(layer, equation)
    assert found.outcome == "differs"
    assert [(hint.kind, hint.explains) for hint in found.hints] == [("graphs", True)]
    assert found.comparison.reading.normalisation == "symmetric"
    assert found.witness is not None
    assert found.witness.graph.is_directed
    assert rd.conform(layer, equation, graphs="undirected")


def test_a_layer_that_is_right_on_simple_graphs_has_another_witness() -> None:
    def layer(x: Tensor, edge_index: Tensor) -> Tensor:
        loops = (edge_index[0] == edge_index[1]).sum()
        return mean(x, edge_index) + loops * x**2

    found = rd.conform(layer, "A@H", normalisation="row", self_loops="none", graphs="undirected")
    assert [hint.kind for hint in found.hints] == ["graphs"]
    assert found.witness is not None
    assert found.witness.graph.has_loops


@pytest.mark.parametrize("values", [{}, {"alpha": 0.5, "beta": 0.25}])
def test_a_gate_of_the_neighbours_is_named(values: dict[str, float]) -> None:
    def layer(x: Tensor, edge_index: Tensor) -> Tensor:
        around = mean(x, edge_index)
        return -0.5 * (x - around) + 0.25 * torch.sigmoid(around) * (around - x)

    found = rd.conform(layer, "-alpha*L@H + beta*sigmoid(H)*(A@H - H)", values=values)
    assert found.hints[0].kind == "operator"
    assert found.equation == "-alpha*L@H + beta*sigmoid(A@H)*(A@H - H)"


@pytest.mark.slow
def test_a_function_of_a_list_and_affine_maps_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Mixed()
    kinds = {"V": "matrix", "b": "channel"}
    found = rd.conform(layer, "phi(H@V + A@H@W + b)", kinds=kinds, functions={"phi": ("relu", "tanh")})
    assert found
    assert found.equation == "tanh(H@V + A@H@W + b)"
    monkeypatch.setattr(layer_check, "AGREEMENT_EFFORT", 10 * LEAST)
    found = rd.conform(layer, "phi(H@V + A@H@W + b)", kinds=kinds, functions={"phi": ("relu", "tanh")})
    assert (found.conforms, found.outcome) == (False, "undecided"), "searches that were not begun rule nothing out"
    monkeypatch.undo()

    def wide(x: Tensor, edge_index: Tensor) -> Tensor:
        return neighbours(x, edge_index) @ torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]], dtype=x.dtype) + 1.0

    assert rd.conform(wide, "A@H", output_map=True, normalisation="none")
    assert not rd.conform(wide, "A@A@H", output_map=True, normalisation="none")
    shifted = rd.conform(lambda x, edge_index: (2 * x + 1) ** 2, "H**2", input_map=True)
    assert shifted


@pytest.mark.parametrize(
    ("compared", "settings"),
    [
        ("step", {"step": 0.25, "count": 3}),
        pytest.param("flow", {"T": 0.75}, marks=pytest.mark.slow),
        ("map", {"count": 2}),
        ("field", {}),
    ],
)
def test_what_is_compared(compared: str, settings: dict[str, float]) -> None:
    """A dense layer, by the definition of each: steps, the exponential, the map twice, the right-hand side."""

    def layer(x: Tensor, adj: Tensor) -> Tensor:
        generator = 0.5 * adj - 0.25 * torch.eye(len(x), dtype=x.dtype)
        whole = torch.eye(len(x), dtype=x.dtype)
        forms = {
            "step": torch.linalg.matrix_power(whole + 0.25 * generator, 3), "flow": torch.matrix_exp(0.75 * generator),
            "map": generator @ generator, "field": generator,
        }  # fmt: skip
        return forms[compared] @ x

    assert rd.conform(layer, "0.5*A@H - 0.25*H", compared=compared, normalisation="none", **settings)
    assert not rd.conform(layer, "0.5*A@H + 0.25*H", compared=compared, normalisation="none", **settings)


def test_a_bound_field() -> None:
    graph = rd.generators.ring(5)
    field = rd.lower(
        "-alpha*L@H + beta*H*(1 - H)", graph.operator("row", dtype=torch.float64), {"alpha": 0.5, "beta": 2.0}
    )
    found = rd.conform(field, "-alpha*L@H + beta*H*(1 - H)", graph=graph, channels=1)
    assert found
    assert found.agreement is not None
    assert (found.agreement.is_proof, found.agreement.degree, found.agreement.graphs) == (True, 2, 1)
    assert {p.name: p.holds for p in found.properties}["permutation equivariance"] is None


def test_a_start_and_a_rule_for_an_operator() -> None:
    def layer(x: Tensor, x_0: Tensor, edge_index: Tensor) -> Tensor:
        degree = neighbours(torch.ones_like(x), edge_index)
        return degree * x - 0.5 * x_0

    rule = {"D": lambda adjacency: np.diag(adjacency.sum(axis=1))}
    assert rd.conform(layer, "D@H - 0.5*H0", operators=rule)
    swapped = rd.conform(layer, "D@H0 - 0.5*H0", operators=rule)
    assert swapped.hints[0].kind == "letter"


# ---------------------------------------------------------------------- differs
@pytest.mark.parametrize(
    ("equation", "options", "kind"),
    [
        ("H + A@H", {}, "sign"),
        ("H - A@A@H", {}, "power"),
        ("H - A@H + 2*H0", {}, "missing term"),
        ("H - 2*A@H", {}, "coefficient"),
        ("tanh(H - A@H)", {}, "activation"),
        ("H - A@H", {"normalisation": "symmetric"}, "normalisation"),
        ("H - A@H", {"self_loops": True}, "self-loops"),
        ("H - A@H", {"transposed": True}, "transposed edges"),
        ("-H + A@H", {}, "sign"),
        ("L@H - A@H", {}, "operator"),
    ],
)
def test_single_faults_are_named(equation: str, options: dict[str, object], kind: str) -> None:
    def layer(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return x - mean(x, edge_index, edge_weight)

    settings = {"normalisation": "row", "self_loops": False, **options}
    found = rd.conform(layer, equation, **settings)  # type: ignore[arg-type]
    assert not found
    assert kind in [hint.kind for hint in found.hints[:3]]
    assert found.witness is not None


def test_a_step_for_the_flow_and_ignored_weights() -> None:
    def step(x: Tensor, edge_index: Tensor) -> Tensor:
        return 0.5 * x + 0.5 * mean(x, edge_index)

    found = rd.conform(step, "-L@H", compared="flow", T=0.5, normalisation="row", self_loops=False)
    assert found.hints[0].text == "the layer computes one step of Euler's method"

    def blind(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return neighbours(x, edge_index)

    found = rd.conform(blind, "A@H", normalisation="none", self_loops=False)
    assert [hint.kind for hint in found.hints] == ["weights"]


def test_a_sign_that_is_assumed_is_held() -> None:
    def grows(x: Tensor, edge_index: Tensor) -> Tensor:
        return 0.5 * (x - mean(x, edge_index))

    assert not rd.conform(grows, "-alpha*L@H")
    assert rd.conform(grows, "-alpha*L@H", assume="alpha real").reading.endswith("alpha = -0.5")
    assert rd.conform(grows, "-alpha*L@H", kinds={"alpha": "channel"})
    assert not rd.conform(grows, "-alpha*L@H", kinds={"alpha": "channel"}, assume="alpha > 0")


@pytest.mark.slow
def test_attention_that_does_not_sum_to_one() -> None:
    def attention(x: Tensor, edge_index: Tensor) -> Tensor:
        weights = torch.linspace(0.3, 0.9, edge_index.shape[1], dtype=x.dtype)
        return neighbours(x, edge_index, weights)

    found = rd.conform(attention, "A@H", normalisation="row", self_loops=False)
    assert found.hints[-1].kind == "attention"
    assert not found.hints[-1].explains


# ---------------------------------------------------------------------- dropout, memory, precision
@pytest.mark.slow
def test_active_dropout() -> None:
    layer = Mixed(rate=0.5)
    kinds = {"V": "matrix", "b": "channel"}
    found = rd.conform(layer, "tanh(H@V + A@H@W + b)", kinds=kinds)
    assert not found
    assert found.hints[0].kind == "dropout"
    assert "layer.eval()" in found.hints[0].text
    assert layer.training
    assert rd.conform(layer.eval(), "tanh(H@V + A@H@W + b)", kinds=kinds)


def test_caches_changed_inputs_and_several_outputs_are_noted() -> None:
    found = rd.conform(Gated(remembers=True), "alpha*A@H", normalisation="row")
    assert found
    assert any("caches" in note for note in found.notes)

    def in_place(x: Tensor, edge_index: Tensor) -> tuple[Tensor, int]:
        return x.mul_(2.0), 1

    found = rd.conform(in_place, "2*H")
    assert found
    assert [note.split(";")[0] for note in found.notes] == [
        "the layer changes its input in place", "the layer returns several values",
    ]  # fmt: skip


def test_single_precision_is_no_proof() -> None:
    def single(x: Tensor, edge_index: Tensor) -> Tensor:
        return neighbours(x.float(), edge_index) / 3

    found = rd.conform(single, "A@H/3", normalisation="none")
    assert found
    assert found.agreement is not None
    assert not found.agreement.is_proof

    def rounded(x: Tensor, edge_index: Tensor) -> Tensor:
        return x * torch.tensor(1 / 3, dtype=torch.float32).double() - neighbours(x, edge_index)

    found = rd.conform(rounded, "H/3 - A@H", normalisation="none")
    assert found
    assert any("single precision" in note for note in found.notes)
    assert found.agreement is not None
    assert not found.agreement.is_proof


@pytest.mark.slow
def test_coefficients_that_are_not_found_leave_the_question_open() -> None:
    def layer(x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.sin(7.0 * x[:, :1] * x[:, 1:]).expand(-1, 2)

    found = rd.conform(layer, "sin(H@W)", channels=2)
    assert (found.conforms, found.outcome) == (False, "undecided")
    assert str(found).startswith("undecided: no values of W were found")


# ---------------------------------------------------------------------- what is refused
def test_errors_say_what_is_expected() -> None:
    with pytest.raises(InvalidArgument, match="expected the graph of a layer f"):
        rd.conform(lambda t, x: x, "H")
    with pytest.raises(InvalidArgument, match="expected a layer that can be called"):
        rd.conform("GCNConv", "H")
    with pytest.raises(InvalidArgument, match="expected values of coefficients"):
        rd.conform(lambda x, edge_index: x, "H", values={"alpha": 1.0})
    with pytest.raises(InvalidArgument, match="expected compared to be one of"):
        rd.conform(lambda x, edge_index: x, "H", compared="flows")
    with pytest.raises(InvalidArgument, match="rename it, or give call"):
        rd.conform(lambda x, batch: x, "H")
    with pytest.raises(InvalidArgument, match="write a matrix"):
        rd.conform(lambda x, edge_index: x[:, :1], "H")
    with pytest.raises(NotApplicable, match="expected one autonomous equation"):
        rd.conform(lambda x, edge_index: x, "H'' = -H")
    with pytest.raises(LanguageError):
        rd.conform(lambda x, edge_index: x, "A*H")
    with pytest.raises(InvalidArgument, match="expected every edge once"):
        ProbeGraph("double", 2, ((0, 1), (0, 1)))


def test_properties() -> None:
    found = rd.conform(released_filter_bank, "-alpha*L@H + beta*(H + A@H)", graphs="undirected")
    held = {p.name: p for p in found.properties}
    assert held["permutation equivariance"].holds
    assert held["local"].measured == "radius 1 hop"
    assert held["linear in the state"].measured == "linear"
    assert held["mass conservation"].holds is False
    assert held["Lipschitz constant"].holds
    assert "at least 1 <= 1, the theorem's bound in the inf-norm" in held["Lipschitz constant"].measured
    diffusion = rd.conform(lambda x, adj: adj @ x - adj.sum(1, keepdim=True) * x, "-L@H", normalisation="none",
                           graphs="undirected")  # fmt: skip
    assert diffusion
    assert {p.name: p.holds for p in diffusion.properties}["mass conservation"]


def test_a_layer_that_depends_on_the_numbers_of_nodes_is_not_equivariant() -> None:
    def numbered(x: Tensor, edge_index: Tensor) -> Tensor:
        return x * torch.arange(len(x), dtype=x.dtype)[:, None]

    found = rd.conform(numbered, "H")
    assert {p.name: p.holds for p in found.properties}["permutation equivariance"] is False
    assert rd.recover(numbered).reason == "it depends on the numbering of the nodes"


@pytest.mark.slow
@pytest.mark.deep
def test_a_wide_layer_that_no_line_describes_gets_an_answer() -> None:
    """A line with two matrices of its width has too many unknown numbers to be looked for."""
    weights = torch.randn(32, 32, generator=torch.Generator().manual_seed(5), dtype=torch.float64)

    class Wide(torch.nn.Module):
        in_channels = 32

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return torch.sin(x @ weights) * torch.tanh(neighbours(x, edge_index)) + x**2

    found = rd.conform(Wide(), "-alpha*L@H + beta*H*(1 - H)")
    assert (found.conforms, found.outcome, found.equation) == (False, "differs", None)


def test_a_fault_is_found_under_an_open_normalisation() -> None:
    def layer(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        source, target = edge_index
        counts = torch.bincount(target, minlength=len(x)).clamp(min=1)[:, None]
        around = torch.zeros_like(x).index_add(0, target, x[source]) / counts
        return -0.5 * (x - around) - 0.3 * x * (1 - x)

    found = rd.conform(layer, "-alpha*L@H + beta*H*(1 - H)", values={"alpha": 0.5, "beta": 0.3}, channels=2)
    assert found.outcome == "differs"
    assert found.hints[0].kind == "sign"
    assert found.equation == "-alpha*L@H - beta*H*(1 - H)"
    assert found.reading.startswith("row normalisation")


@pytest.mark.parametrize("gate", ["around - x", "x"])
def test_gated_lines_are_recovered(gate: str) -> None:
    def layer(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        source, target = edge_index
        around = torch.zeros_like(x).index_add(0, target, x[source])
        return -0.5 * x + 0.25 * torch.sigmoid(x) * (x if gate == "x" else around - x)

    found = rd.recover(layer, channels=2)
    assert found.equation is not None
    assert "sigmoid(H)*H" in found.equation
    assert ("sigmoid(H)*(A@H)" in found.equation) is (gate != "x")
    assert rd.conform(layer, found.equation, normalisation="none", self_loops=False, channels=2)


def test_a_gate_with_a_matrix_is_reported_as_not_tried() -> None:
    weights = torch.tensor([[0.3, -0.2], [0.5, 0.7]], dtype=torch.float64)
    found = rd.recover(lambda x, edge_index: x * torch.sigmoid(x @ weights.to(x.dtype)), channels=2)
    assert not found
    assert "sigmoid(H@W)*H" in found.reason

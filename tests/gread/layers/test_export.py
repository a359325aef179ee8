"""Models with `GREADConv` as programs: torch.export, torch.compile, ONNX; the same numbers on other graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import rdgraph as rd
from gread import GNNClassifier, GREADClassifier, GREADConv, Network, exportable, karate
from gread.layers.exporting import PlainConv
from rdgraph.errors import InvalidArgument, NotApplicable

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0, 4], [1, 0, 2, 1, 3, 2, 0, 3, 4]])
STEPS = {"method": "rk4", "step": 0.25}
#: Polynomials of both kinds, steps, attention of both kinds, sources, degrees, matrices.
LAYERS: list[dict[str, Any]] = [
    {},
    {"reaction": "F", **STEPS},
    {"adjacency": "original"},
    {"adjacency": "original", "normalisation": "row", "time": 3.0, "self_loops": 0.0},
    {"reaction": "ST"},
    {"reaction": "ST", "adjacency": "live", **STEPS},
    {"method": "euler", "step": 0.5},
    {"reaction": "-alpha*L@H + beta*H*tanh(1 - H)", "adjacency": "original", "normalisation": "none", **STEPS},
    {"reaction": "-alpha*L@H + tanh(H@W)", "method": "euler", "step": 0.4},
]


class Net(nn.Module):
    """A layer between two others."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.encoder, self.conv, self.decoder = nn.Linear(5, 8), GREADConv(8, **settings), nn.Linear(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.decoder(self.conv(self.encoder(x), edge_index).relu())
        return out


def make(settings: dict[str, Any]) -> tuple[Net, Tensor]:
    """A network whose parameters are as if it had been trained, and features of six nodes."""
    torch.manual_seed(0)
    net = Net(**settings).eval().requires_grad_(False)
    for value in net.conv.parameters():
        value += 0.3 * torch.randn_like(value)
    return net, torch.randn(6, 5)


def other_graph() -> tuple[Tensor, Tensor]:
    some = torch.randint(0, 9, (2, 12), generator=torch.Generator().manual_seed(1))
    return torch.randn(9, 5), torch.cat([some, some.flip(0)], 1).unique(dim=1)


@pytest.mark.parametrize("settings", LAYERS, ids=str)
def test_a_plain_layer_gives_the_same_numbers(settings: dict[str, Any]) -> None:
    net, x = make(settings)
    plain = exportable(net)
    assert isinstance(plain.conv, PlainConv)
    assert isinstance(net.conv, GREADConv)
    torch.testing.assert_close(plain(x, EDGES), net(x, EDGES), atol=2e-6, rtol=1e-5)
    features, edges = other_graph()
    torch.testing.assert_close(plain(features, edges), net(features, edges), atol=2e-6, rtol=1e-5)


def test_edge_weights_are_part_of_the_program() -> None:
    torch.manual_seed(0)
    layer = GREADConv(4, adjacency="original").requires_grad_(False)
    x, weight = torch.randn(6, 4), torch.tensor([2.0, 2.0, 0.5, 0.5, 1.0, 1.0, 3.0, 3.0, 1.0])
    torch.testing.assert_close(exportable(layer)(x, EDGES, weight), layer(x, EDGES, weight), atol=1e-6, rtol=1e-5)
    with pytest.raises(InvalidArgument, match="no edge_weight for attention"):
        exportable(GREADConv(4))(x, EDGES, weight)


@pytest.mark.parametrize("settings", [LAYERS[0], pytest.param(LAYERS[1], marks=pytest.mark.slow)], ids=str)
def test_an_exported_program_takes_other_graphs(settings: dict[str, Any]) -> None:
    net, x = make(settings)
    nodes, edges = (torch.export.Dim(name, min=2, max=10_000) for name in ("nodes", "edges"))
    program = torch.export.export(
        exportable(net), (x, EDGES), dynamic_shapes={"x": {0: nodes}, "edge_index": {1: edges}}
    )
    module = program.module()
    torch.testing.assert_close(module(x, EDGES), net(x, EDGES), atol=2e-6, rtol=1e-5)
    features, others = other_graph()
    torch.testing.assert_close(module(features, others), net(features, others), atol=2e-6, rtol=1e-5)
    foreign = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert not any("rdgraph" in name or "gread" in name for name in foreign)  # it runs where neither is installed
    assert not any("index_add" in name or "index_put" in name for name in foreign)  # ScatterND, whose sums race


def test_the_layer_itself_names_the_way_to_export_it() -> None:
    net, x = make({})
    with pytest.raises(NotApplicable, match=r"export gread\.exportable\(model\)"):
        torch.export.export(net, (x, EDGES))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"reaction": "F", "method": "strang", "step": 0.25}, "use euler or rk4"),
        ({"reaction": "F", "method": "dopri5"}, "use euler or rk4"),
        ({"reaction": "u' = -L@u + v - u; v' = -L@v - v"}, "one field"),
    ],
)
def test_what_has_no_plain_form_says_so(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(NotApplicable, match=text):
        exportable(GREADConv(8, **settings))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_models_have_one_break_and_plain_ones_none() -> None:
    import torch._dynamo as dynamo

    for settings in (LAYERS[0], LAYERS[1]):
        net, x = make(settings)
        dynamo.reset()
        assert dynamo.explain(net)(x, EDGES).graph_break_count <= 1
        dynamo.reset()
        assert dynamo.explain(exportable(net))(x, EDGES).graph_break_count == 0
        dynamo.reset()
        compiled = torch.compile(net, backend="aot_eager")
        torch.testing.assert_close(compiled(x, EDGES), net(x, EDGES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_onnx_file_gives_the_same_numbers(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    net, x = make(LAYERS[0])
    path = str(tmp_path / "net.onnx")
    nodes, edges = (torch.export.Dim(name, min=2, max=10_000) for name in ("nodes", "edges"))
    torch.onnx.export(
        exportable(net), (x, EDGES), path, dynamo=True, input_names=["x", "edge_index"], verbose=False,
        dynamic_shapes={"x": {0: nodes}, "edge_index": {1: edges}},
    )  # fmt: skip
    session = runtime.InferenceSession(path)
    for features, others in ((x, EDGES), other_graph()):
        (found,) = session.run(None, {"x": features.numpy(), "edge_index": others.numpy()})
        np.testing.assert_allclose(found, net(features, others).numpy(), atol=2e-6, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [{"adjacency": "original"}, {}], ids=str)
def test_an_onnx_file_gives_the_same_numbers_on_several_threads(settings: dict[str, Any], tmp_path: Path) -> None:
    """Many edges of one target, whose additions must not race."""
    pytest.importorskip("onnxscript")
    runtime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    torch.manual_seed(0)
    layer = GREADConv(32, **settings).eval().requires_grad_(False)
    for value in layer.parameters():
        value += 0.3 * torch.randn_like(value)
    some = torch.randint(0, 800, (2, 3200))
    x, edges = torch.randn(800, 32), torch.cat([some, some.flip(0)], 1).unique(dim=1)
    path = str(tmp_path / "layer.onnx")
    torch.onnx.export(exportable(layer), (x, edges), path, dynamo=True, input_names=["x", "edge_index"], verbose=False)
    assert "ScatterND" not in {node.op_type for node in onnx.load(path).graph.node}
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session, expected = runtime.InferenceSession(path, options), layer(x, edges).numpy()
    for _ in range(200):
        (found,) = session.run(None, {"x": x.numpy(), "edge_index": edges.numpy()})
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4)


# ---------------------------------------------------------------------- trained networks
#: Linear and stepped flows, all parts of the network, several members, a learned function.
CLASSIFIERS: list[dict[str, Any]] = [
    {},
    {"adjacency": "original", "normalisation": "none", "reaction": "-alpha*L@H + beta*H*tanh(1 - H)", **STEPS},
    {"encoder_mlp": True, "decoder_mlp": True, "relu": False, "row_features": True, "adjacency": "original"},
    {"members": 2, "adjacency": "live", "method": "euler", "step": 0.25, "self_loops": 0.0},
    {"reaction": "-alpha*L@H + phi(H) where phi learned", **STEPS},
    {"reaction": "F"},  # a region for the start, and slopes inside tanh
    {"reaction": "-alpha*L@H + beta*H**2"},
]


def trained(**settings: Any) -> GREADClassifier:
    """A few epochs on a weighted graph with self-loops and an isolated node."""
    data = karate()
    matrix = data.graph.to_scipy().toarray() * 2.0
    matrix[3, 3], matrix[11, :], matrix[:, 11] = 1.5, 0.0, 0.0
    graph = rd.Graph.from_dense(matrix)
    clf = GREADClassifier(**{"hidden": 8, "epochs": 4, "learning_rate": 0.05, "heads": 2, "device": "cpu"} | settings)
    return clf.fit(data.x, data.y, graph=graph, mask=data.masks.train[0], val_mask=data.masks.val[0])


def dense_features() -> Tensor:
    x = karate().x
    return torch.tensor(np.asarray(x.toarray() if hasattr(x, "toarray") else x), dtype=torch.float32)


@pytest.mark.parametrize("settings", CLASSIFIERS, ids=str)
def test_a_trained_classifier_is_a_module_of_its_features(settings: dict[str, Any]) -> None:
    clf, x = trained(**settings), dense_features()
    plain = exportable(clf)
    found = torch.softmax(plain(x).double(), -1).numpy()
    np.testing.assert_allclose(found, clf.predict_proba(), atol=1e-5)
    moved = x + 0.3
    np.testing.assert_allclose(
        torch.softmax(plain(moved).double(), -1).numpy(),
        clf.predict_proba(moved.numpy(), graph=clf._state.graph),
        atol=1e-5,
    )


def test_a_trained_classifier_goes_through_export(tmp_path: Path) -> None:
    clf, x = trained(), dense_features()
    program = torch.export.export(exportable(clf), (x,))
    torch.testing.assert_close(program.module()(x), exportable(clf)(x))
    clf.network_.save(tmp_path)
    loaded = exportable(Network.load(tmp_path), clf._state.graph)
    torch.testing.assert_close(loaded(x), exportable(clf.network_, clf._state.graph)(x))
    with pytest.raises(InvalidArgument, match="pass exportable"):
        exportable(clf.network_)
    with pytest.raises(InvalidArgument, match="a classifier alone"):
        exportable(clf, clf._state.graph)
    with pytest.raises(InvalidArgument, match="leave it out"):
        exportable(GREADConv(4), clf._state.graph)
    with pytest.raises(InvalidArgument, match="got int"):
        exportable(3)


def test_classifiers_without_a_plain_form_say_so() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        exportable(GREADClassifier())
    data = karate()
    other = GNNClassifier("gcn", hidden=4, epochs=2, device="cpu")
    other.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])
    with pytest.raises(NotApplicable, match="around an equation"):
        exportable(other)
    with pytest.raises(NotApplicable, match="storage"):
        exportable(trained(storage="bfloat16", **STEPS))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_trained_classifier_becomes_an_onnx_file(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    clf, x = trained(members=2), dense_features()
    path = str(tmp_path / "classifier.onnx")
    torch.onnx.export(exportable(clf), (x,), path, dynamo=True, input_names=["x"], verbose=False)
    (found,) = runtime.InferenceSession(path).run(None, {"x": x.numpy()})
    np.testing.assert_allclose(np.exp(found), clf.predict_proba(), atol=1e-5)

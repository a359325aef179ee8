"""`GREADConv` inside a PyTorch Geometric model."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import torch
from torch import nn

from gread.layers.conv import GREADConv
from tests.gread.layers.small_layers import NODES, PATH, make_layer, make_state
from tests.paths import ROOT


def import_pyg() -> Any:
    """torch_geometric, whose own import warns of things that are not ours to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch_geometric", reason="torch-geometric is not installed: rdgraph[pyg]")


def test_between_layers_of_pytorch_geometric() -> None:
    import_pyg()
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GCNConv, Sequential

    torch.manual_seed(0)
    layers = [
        (GCNConv(4, 8), "x, edge_index -> x"),
        (nn.ReLU(), "x -> x"),
        (GREADConv(8, "BS", heads=2, attention_dim=8, time=1.5), "x, edge_index -> x"),
        (nn.Linear(8, 2), "x -> x"),
    ]
    model = Sequential("x, edge_index", layers)
    graphs = [Data(x=torch.randn(n, 4), edge_index=PATH, y=torch.arange(n) % 2) for n in (4, 5)]
    batch = Batch.from_data_list(graphs)
    apart = torch.cat([model(g.x, g.edge_index) for g in graphs])
    torch.testing.assert_close(model(batch.x, batch.edge_index), apart, rtol=1e-5, atol=1e-6)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(batch.x, batch.edge_index), batch.y)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert all(not torch.equal(start[name], p) for name, p in model.named_parameters())


def test_it_collects_as_pytorch_geometric_does() -> None:
    """One Euler step of -L H with alpha = 1 is A H: the propagation of GCN, target from source."""
    import_pyg()
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_dense_adj

    layer = make_layer("-alpha*L@H", adjacency="original", method="euler", step=1.0, alpha_link="free")
    nn.init.ones_(layer.coefficient_alpha)
    weight = torch.tensor([1.0, 1.0, 2.0, 2.0, 3.0, 3.0], dtype=torch.float64)
    edges, scaled = gcn_norm(PATH, weight, NODES, dtype=torch.float64)
    A = to_dense_adj(edges, edge_attr=scaled, max_num_nodes=NODES)[0].T
    torch.testing.assert_close(layer(make_state(), PATH, weight), A @ make_state(), rtol=1e-12, atol=1e-13)
    row = make_layer("-alpha*L@H", adjacency="original", method="euler", step=1.0, normalisation="row", self_loops=0.0)
    nn.init.constant_(row.coefficient_alpha, 40.0)  # a sigmoid of one
    x = torch.eye(2, 3, dtype=torch.float64)
    expected = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(row(x, torch.tensor([[0], [1]])), expected, rtol=0, atol=1e-15)


def test_the_model_of_the_documentation() -> None:
    import_pyg()
    page = (ROOT / "docs/guides/greadconv.md").read_text(encoding="utf-8")
    blocks = [b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "torch_geometric" in b]
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    assert names["out"].shape == (5, 3)
    assert bool(names["out"].isfinite().all())

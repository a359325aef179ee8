"""`GREADConv` on the batches of PyTorch Geometric's `NeighborLoader`.

The loader's own sampler needs pyg-lib or torch-sparse. Where neither is installed, it is given a sampler written here,
through the argument that it has for that; the loader, and the layout of its batches, are its own.
"""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gread import GREADConv
from gread.datasets.community_graph import community_graph
from rdgraph.errors import InvalidArgument

with warnings.catch_warnings():  # its own import warns of things that are not ours to mend
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed: rdgraph[pyg]")
    from torch_geometric import typing as pyg_typing
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput


class PlainSampler(BaseSampler):
    """Up to k neighbours of every new node, hop by hop, -1 for all of them; seeds come first, edges lead to them."""

    def __init__(self, edge_index: Tensor, num_neighbors: list[int], seed: int = 0) -> None:
        self.edge_index, self.num_neighbors = edge_index, num_neighbors
        self.random = torch.Generator().manual_seed(seed)

    def sample_from_nodes(self, index: NodeSamplerInput, **_: Any) -> SamplerOutput:
        nodes = index.node.tolist()
        place = {node: k for k, node in enumerate(nodes)}
        front, rows, columns, edges = list(nodes), [], [], []
        counts, edge_counts = [len(nodes)], []
        for most in self.num_neighbors:
            new, before = [], len(edges)
            for target in front:
                into = (self.edge_index[1] == target).nonzero().ravel()
                if 0 <= most < len(into):
                    into = into[torch.randperm(len(into), generator=self.random)[:most]]
                for edge in into.tolist():
                    source = int(self.edge_index[0, edge])
                    if source not in place:
                        place[source] = len(nodes)
                        nodes.append(source)
                        new.append(source)
                    rows.append(place[source])
                    columns.append(place[target])
                    edges.append(edge)
            counts.append(len(new))
            edge_counts.append(len(edges) - before)
            front = new
        found = SamplerOutput(
            node=torch.tensor(nodes), row=torch.tensor(rows, dtype=torch.int64),
            col=torch.tensor(columns, dtype=torch.int64), edge=torch.tensor(edges, dtype=torch.int64),
            num_sampled_nodes=counts, num_sampled_edges=edge_counts,
        )  # fmt: skip
        found.metadata = (index.input_id, index.time)
        return found

    def sample_from_edges(self, index: Any, **_: Any) -> SamplerOutput:
        raise NotImplementedError


@pytest.fixture
def data() -> Data:
    made = community_graph(80, 640, features=6, classes=2, inside=0.9, seed=1)
    return Data(*(torch.from_numpy(part) for part in (made.x, made.edges)), y=torch.from_numpy(made.y))


def make_loader(data: Data, num_neighbors: list[int], batch_size: int = 16, **options: Any) -> NeighborLoader:
    own = not (pyg_typing.WITH_PYG_LIB or pyg_typing.WITH_TORCH_SPARSE)
    sampler = PlainSampler(data.edge_index, num_neighbors) if own else None
    return NeighborLoader(data, num_neighbors, batch_size=batch_size, neighbor_sampler=sampler, **options)


class Classifier(nn.Module):
    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 2)
        self.layer = GREADConv(8, heads=2, attention_dim=8, **settings)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.layer(self.first(x), edge_index))


@pytest.mark.parametrize(
    "settings",
    [
        {"reaction": "-alpha*L@H", "adjacency": "original", "normalisation": "row", "method": "euler", "step": 1.0},
        {"reaction": "BS", "adjacency": "soft", "method": "euler", "step": 1.0},
        {"reaction": "F", "adjacency": "soft", "method": "rk4", "step": 1.0, "time": 1.0},
    ],
)
def test_seeds_with_all_their_neighbours_are_classified_as_on_the_whole_graph(data: Data, settings: Any) -> None:
    """Rows of A know the edges into a node alone, so that as many hops as the flow has products are enough."""
    torch.manual_seed(0)
    model = Classifier(**settings).double()
    data.x = data.x.double()
    expected = model(data.x, data.edge_index)
    seen = 0
    for batch in make_loader(data, [-1] * 4):
        found = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(found, expected[batch.n_id[: batch.batch_size]], rtol=1e-9, atol=1e-10)
        seen += batch.batch_size
    assert seen == data.num_nodes


def test_a_network_learns_from_sampled_neighbours(data: Data) -> None:
    torch.manual_seed(1)
    model = Classifier(reaction="BS", time=1.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(12):
        total = 0.0
        for batch in make_loader(data, [4, 4], shuffle=True):
            out = model(batch.x, batch.edge_index)[: batch.batch_size]
            loss = nn.functional.cross_entropy(out, batch.y[: batch.batch_size])
            optimiser.zero_grad()
            loss.backward()
            assert all(p.grad is not None for p in model.layer.parameters())
            optimiser.step()
            total += float(loss.detach()) * batch.batch_size / data.num_nodes
        losses.append(total)
    assert losses[-1] < 0.6 * losses[0]
    with torch.no_grad():
        accuracy = (model(data.x, data.edge_index).argmax(-1) == data.y).float().mean()
    assert accuracy > 0.85, "what was learned on samples serves the whole graph"
    assert len(model.layer._layouts) <= 4, "patterns of batches that are gone are not remembered"


def test_sampled_edges_are_directed_which_the_symmetric_normalisation_refuses(data: Data) -> None:
    model = Classifier(reaction="BS", adjacency="original", normalisation="symmetric")
    batch = next(iter(make_loader(data, [2])))
    with pytest.raises(InvalidArgument, match="symmetric"):
        model(batch.x, batch.edge_index)


@pytest.mark.parametrize("size", [1, 7, 200])
@pytest.mark.parametrize("settings", [{}, {"adjacency": "original", "normalisation": "row", "self_loops": 0.0}])
def test_seeds_without_neighbours_and_parts_apart_in_batches_of_any_size(
    data: Data, size: int, settings: dict[str, Any]
) -> None:
    torch.manual_seed(2)
    data.x = torch.cat([data.x, torch.randn(4, 6)]).double()  # two nodes without edges, and a part of two
    data.edge_index = torch.cat([data.edge_index, torch.tensor([[82, 83], [83, 82]])], 1)
    model = Classifier(reaction="BS", method="euler", step=0.5, **settings).double()
    expected = model(data.x, data.edge_index)
    for batch in make_loader(data, [-1] * 8, batch_size=size, input_nodes=torch.tensor([80, 82, 3, 81, 83])):
        found = model(batch.x, batch.edge_index)[: batch.batch_size]
        torch.testing.assert_close(found, expected[batch.n_id[: batch.batch_size]], rtol=1e-9, atol=1e-10)
        found.sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


def test_a_trained_network_is_saved_and_loaded(data: Data) -> None:
    model = Classifier(reaction="BS")
    for batch in make_loader(data, [3, 2]):
        model(batch.x, batch.edge_index).sum().backward()
    model.to("cpu")
    expected = model(data.x, data.edge_index)
    kept, again = io.BytesIO(), Classifier(reaction="BS")
    torch.save(model.state_dict(), kept)
    kept.seek(0)
    again.load_state_dict(torch.load(kept, weights_only=True))
    for other in (again, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(data.x, data.edge_index), expected)

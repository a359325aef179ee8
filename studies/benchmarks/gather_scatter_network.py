"""The network as everybody writes it first, by gather, scatter and torchdiffeq: what training is timed against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from gread import NodeData
from gread.settings.config import Config


class GatherScatter(nn.Module):
    """The same network in the usual way: dense features, products by gathering and scattering, torchdiffeq's RK4."""

    def __init__(self, data: NodeData, config: Config) -> None:
        super().__init__()
        m = self.config = config.gread
        source, target = torch.tensor(data.graph.edge_index)
        loops = torch.arange(data.num_nodes)
        self.source, self.target = torch.cat([source, loops]), torch.cat([target, loops])
        x = data.x if isinstance(data.x, np.ndarray) else data.x.toarray()
        self.x = torch.tensor(x, dtype=torch.float32)
        self.encoder = nn.Linear(data.num_features, m.hidden)
        self.query, self.key = nn.Linear(m.hidden, m.attention_dim), nn.Linear(m.hidden, m.attention_dim)
        self.alpha, self.beta = nn.Parameter(torch.zeros(m.hidden)), nn.Parameter(torch.rand(m.hidden) * 2 - 1)
        self.hidden, self.decoder = nn.Linear(m.hidden, m.hidden), nn.Linear(m.hidden, data.num_classes)

    def attention(self, h: Tensor) -> Tensor:
        heads, nodes = self.config.heads, len(h)
        q, k = (layer(h).view(nodes, heads, -1) for layer in (self.query, self.key))
        logits = (q[self.target] * k[self.source]).sum(-1) / q.shape[-1] ** 0.5
        where = self.target[:, None].expand_as(logits)
        top = logits.new_full((nodes, heads), -torch.inf).scatter_reduce(0, where, logits, "amax")
        raised = torch.exp(logits - top[self.target])
        total = raised.new_zeros((nodes, heads)).index_add(0, self.target, raised)
        return (raised / total[self.target]).mean(1)

    def forward(self) -> Tensor:
        from torchdiffeq import odeint

        m = self.config
        h = self.encoder(functional.dropout(self.x, m.input_dropout, self.training))
        weights = self.attention(h)
        alpha = torch.sigmoid(self.alpha)

        def product(y: Tensor) -> Tensor:
            return torch.zeros_like(y).index_add(0, self.target, weights[:, None] * y[self.source])

        def field(t: Tensor, y: Tensor) -> Tensor:
            moved = product(y)
            return alpha * (moved - y) + self.beta * (moved - product(moved))

        times = torch.tensor([0.0, m.time])
        h = odeint(field, h, times, method="rk4", options={"step_size": m.step})[-1]
        h = functional.dropout(torch.relu(h), m.dropout, self.training)
        h = functional.dropout(h, m.dropout, self.training)
        h = functional.dropout(h + self.hidden(torch.tanh(h)), m.dropout, self.training)
        return functional.dropout(self.decoder(torch.tanh(h)), m.dropout, self.training)


def peer_epoch(data: NodeData, config: Config) -> Callable[[], None]:
    """A training step and an evaluation of the usual network on split 0."""
    torch.manual_seed(0)
    model = GatherScatter(data, config)
    t = config.training
    adam = torch.optim.Adam(model.parameters(), lr=t.learning_rate, weight_decay=t.weight_decay)
    train, y = torch.tensor(data.masks.train[0]), torch.tensor(data.y)

    def epoch() -> None:
        model.train()
        adam.zero_grad()
        functional.cross_entropy(model()[train], y[train]).backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            (model().argmax(-1) == y).float().mean()

    return epoch

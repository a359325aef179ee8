"""ACM-GCN and ACM-GCN+: Luan et al., "Revisiting Heterophily for Graph Neural Networks", NeurIPS 2022."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor

from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.norms import LayerNorm
from gread.models.randomness import Dropper
from gread.settings.model_records import ModelRecord, StackedSettings


@dataclass(frozen=True, kw_only=True)
class ACMGCNSettings(StackedSettings):
    """Settings of ACM-GCN; `structure` adds the fourth channel and the norms of ACM-GCN+."""

    model: ClassVar[str] = "acmgcn"

    structure: bool = False


class ACMGCN(BatchedModel):
    """H' = 3 (a_L o L + a_H o U + a_I o I): what passes low, what passes high and the state itself, mixed node by node.

    L = relu(A H W_L), U = relu((1 - A) H W_H), I = relu(H W_I), A = D^-1 (W + 1) with self-loops; the shares of a node
    are a = softmax([sigmoid(L v_L), sigmoid(U v_H), sigmoid(I v_I)] M / 3), and o multiplies rows. All layers have this
    form, the last, the logits, too.

    With `structure` there is a fourth channel relu(W V), V with a row for every node; the shares are softmax(.../4) of
    four, the v see states after layer norm, and H' is the plain sum, as in the authors' code, where a misspelt name
    leaves the norms out.

    The three products with H are one, and A acts on two channels at once; the authors' code has a dense matrix 1 - A.
    """

    settings: ACMGCNSettings

    def build(self) -> None:
        """The weights of all channels side by side, v and M for every layer."""
        s = self.settings
        self.adjacency = self.place.operator("row", self_loops=1.0)
        self.graph = self.place.operator("none") if s.structure else None
        self.channels = 4 if s.structure else 3
        self.norms: dict[tuple[int, int], LayerNorm] = {}
        for k, (inputs, outputs) in enumerate(pairwise(s.widths(self.features, self.classes))):
            self.add_parameter(f"layer_{k}_weight", self.uniform((inputs, 3 * outputs), outputs**-0.5))
            self.add_parameter(f"layer_{k}_scores", self.uniform((self.channels, outputs), 1.0))
            self.add_parameter(f"layer_{k}_mixer", self.uniform((self.channels, self.channels), self.channels**-0.5))
            if s.structure:
                self.add_parameter(f"layer_{k}_structure", self.uniform((self.place.nodes, outputs), outputs**-0.5))
                for c in range(self.channels):
                    self.norms[k, c] = LayerNorm(self, f"layer_{k}_norm_{c}", outputs)

    def pass_on(self, k: int, h: Tensor | Features) -> Tensor:
        """The channels of layer k, mixed."""
        low, high, own = self.times(f"layer_{k}", h).chunk(3, -1)
        averaged = self.adjacency @ torch.cat([low, high], -1)
        smooth, rough = averaged.chunk(2, -1)
        parts = [smooth, high - rough, own]
        if self.graph is not None:
            parts.append(self.graph @ self.get_parameter(f"layer_{k}_structure"))
        channels = torch.relu(torch.stack(parts, 2))  # (M, n, channels, outputs)
        shares = self.shares(k, channels)
        factor = 1.0 if self.graph is not None else 3.0
        return factor * torch.einsum("mnc,mnco->mno", shares, channels)

    def shares(self, k: int, channels: Tensor) -> Tensor:
        """What every node takes of its channels (M, n, channels); they sum to 1."""
        seen = channels
        if self.norms:
            seen = torch.stack([self.norms[k, c](self, channels[:, :, c]) for c in range(self.channels)], 2)
        scores = torch.einsum("mnco,mco->mnc", seen, self.get_parameter(f"layer_{k}_scores"))
        return torch.softmax(torch.sigmoid(scores) @ self.get_parameter(f"layer_{k}_mixer") / self.channels, -1)

    def states(self, x: Features, drop: Dropper) -> list[Tensor]:
        """The output of every layer."""
        states = [self.pass_on(0, drop.features(x))]
        for k in range(1, self.settings.layers):
            states.append(self.pass_on(k, drop(states[-1])))
        return states


RECORDS = (
    ModelRecord(
        "acmgcn", "ACM-GCN", "heterophily", source="Luan et al., NeurIPS 2022",
        rule="H' = 3 (a_L o relu(A H W_L) + a_H o relu((1 - A) H W_H) + a_I o relu(H W_I)), a node by node",
        settings=ACMGCNSettings, network=ACMGCN, published="ACM-GCN",
    ),
)  # fmt: skip

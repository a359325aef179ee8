"""BLEND: Chamberlain et al., "Beltrami Flow and Neural Diffusion on Graphs", NeurIPS 2021."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gread.models.features import Features
from gread.models.randomness import Dropper
from gread.settings.line_settings import LineSettings
from gread.settings.model_records import ModelRecord
from gread.substrate.graph_positions import laplacian_vectors, pagerank_rows
from gread.zoo.line_model import LineModel

POSITIONS = ("pagerank", "laplacian")


@dataclass(frozen=True, kw_only=True)
class BlendSettings(LineSettings):
    """Settings of BLEND: u' = -L u, v' = -L v, with L = I - S(u, v), u from the features and v from positions.

    Attention is computed from features and positions together, and carries both; the decoder reads both. `positions`
    pagerank are rows of personalised PageRank, cut to the `largest` entries, which the encoder of positions takes as n
    numbers (the authors' GDC); laplacian are `largest` eigenvectors. The authors' other encodings, DeepWalk and
    hyperbolic, are downloads. `adjacency` soft is attention from the start that stays, live follows the states.

    Features and positions have the same number of channels here, where the authors' have 64 and 16; their rewiring of
    the graph and the kernel of products are left out.
    """

    model: ClassVar[str] = "blend"

    reaction: str = "BLEND"
    adjacency: str = "soft"
    positions: str = "pagerank"
    teleport: float = 0.05
    largest: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_one_of("positions", POSITIONS)
        self.check_at_least(1, "largest")
        self.check_share("teleport")


class Blend(LineModel):
    """H(0) = [X W + b, P V + c] for the two fields u and v, P the positions; then as every line."""

    config: BlendSettings

    @staticmethod
    def nodes_of(config: Any, parameters: Mapping[str, Tensor]) -> int:
        """As many as rows of PageRank have entries; eigenvectors fit any graph."""
        return int(parameters["positions_weight"].shape[1]) if config.positions == "pagerank" else 1

    def add_encoder(self, columns: int) -> None:
        """One encoder for the features and one for the positions."""
        self.positions = self.place.once(
            ("positions", self.config.positions, self.config.largest, self.config.teleport), self._positions
        )
        super().add_encoder(columns // 2)
        self.add_linear("positions", self.positions.shape[1], columns // 2)

    def _positions(self) -> Features:
        """P of the graph, or of the graph of every member."""
        c = self.config
        if c.positions == "laplacian":
            each = [laplacian_vectors(graph, c.largest) for graph in self.place.graphs]
            return Features.make(each[0] if len(each) == 1 else np.stack(each), self.place.device, self.place.dtype)
        rows = [pagerank_rows(graph, c.teleport, c.largest, self.place.device) for graph in self.place.graphs]
        if len(rows) == 1:
            return Features.make(rows[0], self.place.device, self.place.dtype, self.members)
        return Features.make(np.stack([part.toarray() for part in rows]), self.place.device, self.place.dtype)

    def first(self, x: Features, drop: Dropper) -> Tensor:
        """What the linear encoders give, side by side."""
        return torch.cat([super().first(x, drop), self.linear("positions", drop.features(self.positions))], -1)


RECORDS = (
    ModelRecord(
        "blend", "BLEND", "continuous", "Chamberlain et al., NeurIPS 2021", "dZ/dt = (S(Z) - I) Z, Z = [X W, P V]",
        BlendSettings, Blend, published="BLEND",
    ),
)  # fmt: skip

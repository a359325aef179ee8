"""`RowStore`: rows of propagated features as batches ask for them, from memory where they fit, else from the disk."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rdgraph.integrators.power_files import Powers
from rdgraph.kernels.device_memory import free_memory

#: The share of the free memory that rows may take.
SHARE = 0.4
#: Bytes of the rows of one piece of an evaluation, about.
PIECE = 1 << 28


class RowStore:
    """Rows (m, (K + 1)(f + 1)) of the powers up to a degree, at nodes that are known beforehand.

    Args:
        powers: The propagated features.
        nodes: The nodes (m,) that will be asked for, rising.
        degree: The last power that is read.
        device: Where the rows are wanted.
        dtype: Their precision there.
        memory: Bytes that they may take; by default a share of what is free.
    """

    def __init__(
        self, powers: Powers, nodes: np.ndarray, degree: int, device: str, dtype: torch.dtype, memory: int | None = None
    ) -> None:
        self.powers, self.nodes, self.degree, self.device, self.dtype = powers, nodes, degree, device, dtype
        self.row_bytes = (degree + 1) * (powers.features + 1) * torch.empty((), dtype=dtype).element_size()
        room = int(SHARE * free_memory(device)) if memory is None else memory
        self.held: Tensor | None = None
        if len(nodes) * self.row_bytes <= room:
            self.held = torch.empty((len(nodes), self.row_bytes // self._item), dtype=dtype, device=device)
            for a, b in self.pieces(len(nodes)):
                self.held[a:b] = self._read(nodes[a:b])

    @property
    def _item(self) -> int:
        return torch.empty((), dtype=self.dtype).element_size()

    @property
    def is_held(self) -> bool:
        """Whether all rows lie in memory."""
        return self.held is not None

    def pieces(self, count: int) -> list[tuple[int, int]]:
        """Spans of rows that are looked at together when there is no gradient."""
        size = max(1, PIECE // self.row_bytes)
        return [(a, min(a + size, count)) for a in range(0, count, size)]

    def span(self, first: int, end: int) -> Tensor:
        """The rows of the nodes from one place to another."""
        return self._read(self.nodes[first:end]) if self.held is None else self.held[first:end]

    def take(self, nodes: np.ndarray) -> Tensor:
        """The rows of some of the nodes, in their order."""
        if self.held is None:
            return self._read(nodes)
        places = torch.from_numpy(np.searchsorted(self.nodes, nodes)).to(self.held.device)
        return self.held[places]

    def _read(self, nodes: np.ndarray) -> Tensor:
        rows = torch.from_numpy(self.powers.rows(nodes, self.degree)).to(self.device, self.dtype)
        return rows.transpose(0, 1).reshape(len(nodes), -1)

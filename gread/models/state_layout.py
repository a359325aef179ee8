"""`StateLayout`: which states of a system an encoder sets, attention sees and a decoder reads."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gread.settings.gread_settings import ALL, GreadSettings
from rdgraph.errors import UnknownName
from rdgraph.language.reader import PRIME


@dataclass(frozen=True)
class StateLayout:
    """The states (..., nodes, states*d) of a network, side by side along the channels in the order of `system.fields`.

    The encoder sets those in `encoded`, which attention sees; all others, velocities, start at zero, or with `is_same`
    where their fields do. The decoder reads those in `read`. Of one field everything is the state itself. What is
    encoded is mapped into `intervals`, one for each encoded state, where there are some.

    >>> layout = StateLayout.of(GreadSettings("H'' = -alpha*L@H", hidden=2))
    >>> layout.fields, layout.encoded, layout.read
    (('H', "H'"), ('H',), ('H',))
    >>> layout.start(torch.ones(1, 2))
    tensor([[1., 1., 0., 0.]])
    """

    fields: tuple[str, ...]
    encoded: tuple[str, ...]
    read: tuple[str, ...]
    width: int
    is_same: bool = False
    intervals: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, model: GreadSettings) -> StateLayout:
        """The layout that a model asks for; a readout that is no state of its equation is an UnknownName."""
        fields = model.system.fields
        encoded = fields if model.velocity == "encoded" else tuple(x for x in fields if not x.endswith(PRIME))
        if model.readout not in (ALL, *fields):
            raise UnknownName("readout", model.readout, (ALL, *fields))
        read = encoded if model.readout == ALL else (model.readout,)
        intervals = model.region.of(len(encoded))
        return cls(fields, encoded, read, model.hidden, model.velocity == "same", intervals)

    @property
    def encoded_width(self) -> int:
        """Columns of what the encoder sets, and attention sees."""
        return len(self.encoded) * self.width

    @property
    def read_width(self) -> int:
        """Columns of what the decoder reads."""
        return len(self.read) * self.width

    def start(self, encoded: Tensor) -> Tensor:
        """All states at 0, from those that are encoded, side by side."""
        encoded = self._mapped(encoded)
        if self.encoded == self.fields:
            return encoded
        blocks = dict(zip(self.encoded, encoded.chunk(len(self.encoded), -1), strict=True))
        still = torch.zeros_like(blocks[self.encoded[0]])
        moving = {name: blocks[name.removesuffix(PRIME)] if self.is_same else still for name in self.fields}
        return torch.cat([blocks.get(name, moving[name]) for name in self.fields], -1)

    def _mapped(self, encoded: Tensor) -> Tensor:
        """Encoded values in their intervals: m + r tanh(e/r)."""
        if not self.intervals:
            return encoded
        blocks = encoded.chunk(len(self.encoded), -1)
        pairs = [((high + low) / 2, (high - low) / 2) for low, high in self.intervals]
        mapped = [m + r * torch.tanh(block / r) for block, (m, r) in zip(blocks, pairs, strict=True)]
        return torch.cat(mapped, -1) if mapped[1:] else mapped[0]

    def clamped(self, states: Tensor) -> Tensor:
        """States with those that are encoded clamped to their intervals."""
        ends = dict(zip(self.encoded, self.intervals, strict=True))
        blocks = zip(self.fields, states.chunk(len(self.fields), -1), strict=True)
        return torch.cat([block.clamp(*ends[name]) if name in ends else block for name, block in blocks], -1)

    def seen(self, states: Tensor) -> Tensor:
        """What attention is computed from."""
        return self._chosen(states, self.encoded)

    def readout(self, states: Tensor) -> Tensor:
        """What the decoder reads."""
        return self._chosen(states, self.read)

    def block(self, states: Tensor, name: str) -> Tensor:
        """One state by name."""
        if name not in self.fields:
            raise UnknownName("field of this network", name, self.fields)
        return self._chosen(states, (name,))

    def _chosen(self, states: Tensor, names: tuple[str, ...]) -> Tensor:
        if names == self.fields:
            return states
        blocks = dict(zip(self.fields, states.chunk(len(self.fields), -1), strict=True))
        return torch.cat([blocks[name] for name in names], -1)

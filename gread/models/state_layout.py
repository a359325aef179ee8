"""`StateLayout`: the states of a system that are encoded, used by attention and decoded."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gread.settings.gread_settings import ALL, GreadSettings
from rdgraph.errors import UnknownName
from rdgraph.language.reader import PRIME


@dataclass(frozen=True)
class StateLayout:
    """The states (..., nodes, states*d) of a network, concatenated along the channels in the order of `system.fields`.

    The encoder sets those in `encoded`, which attention uses; all others, velocities, start at zero, or with `is_same`
    equal to their fields. The decoder reads those in `read`. For a single field all of these are the state itself.
    Encoded states are mapped into `intervals`, one for each of them, if given.

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
        """The layout of a model; a readout that is not a state of its equation raises UnknownName."""
        fields = model.system.fields
        encoded = fields if model.velocity == "encoded" else tuple(x for x in fields if not x.endswith(PRIME))
        if model.readout not in (ALL, *fields):
            raise UnknownName("readout", model.readout, (ALL, *fields))
        read = encoded if model.readout == ALL else (model.readout,)
        intervals = model.region.of(len(encoded))
        return cls(fields, encoded, read, model.hidden, model.velocity == "same", intervals)

    @property
    def encoded_width(self) -> int:
        """Columns of the encoded states."""
        return len(self.encoded) * self.width

    @property
    def read_width(self) -> int:
        """Columns of the decoded states."""
        return len(self.read) * self.width

    def start(self, encoded: Tensor) -> Tensor:
        """All initial states, from the encoded ones, concatenated."""
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
        """The states, with the encoded ones clamped to their intervals."""
        ends = dict(zip(self.encoded, self.intervals, strict=True))
        blocks = zip(self.fields, states.chunk(len(self.fields), -1), strict=True)
        return torch.cat([block.clamp(*ends[name]) if name in ends else block for name, block in blocks], -1)

    def seen(self, states: Tensor) -> Tensor:
        """The states that attention is computed from."""
        return self._chosen(states, self.fields, self.encoded)

    def readout(self, states: Tensor) -> Tensor:
        """The states that the decoder reads."""
        return self._chosen(states, self.fields, self.read)

    def read_encoded(self, encoded: Tensor) -> Tensor:
        """The states that the decoder reads, among the encoded ones."""
        return self._chosen(encoded, self.encoded, self.read)

    def block(self, states: Tensor, name: str) -> Tensor:
        """One state by name."""
        if name not in self.fields:
            raise UnknownName("field of this network", name, self.fields)
        return self._chosen(states, self.fields, (name,))

    @staticmethod
    def _chosen(states: Tensor, among: tuple[str, ...], names: tuple[str, ...]) -> Tensor:
        if names == among:
            return states
        blocks = dict(zip(among, states.chunk(len(among), -1), strict=True))
        return torch.cat([blocks[name] for name in names], -1)

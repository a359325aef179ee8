"""`MemberState`: all that training has changed in some members of an ensemble, to go on with elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gread.models.mixed_coefficients import fitted
from rdgraph.errors import InvalidArgument

#: Parts of the state that all members share.
SHARED = ("step",)


@dataclass(frozen=True, eq=False)
class MemberState:
    """All that training has changed in some members of an ensemble, and the degrees of their polynomials."""

    values: dict[str, Tensor]
    degrees: tuple[int, ...]

    def chosen(self, members: Sequence[int]) -> MemberState:
        """A copy of that of some of them, in that order."""
        first = next(iter(self.values.values()))
        index = torch.tensor(list(members), dtype=torch.int64, device=first.device)
        found = {
            name: value.clone() if name in SHARED else value.index_select(_member_axis(name), index)
            for name, value in self.values.items()
        }
        return MemberState(found, tuple(self.degrees[k] for k in members))

    def on(self, device: str) -> MemberState:
        """The same on another device."""
        return MemberState({name: value.to(device) for name, value in self.values.items()}, self.degrees)

    @staticmethod
    def joined(pieces: Sequence[MemberState]) -> MemberState:
        """That of all members of several pieces; they have to be at one epoch."""
        epochs = {int(piece.values["step"]) for piece in pieces}
        if len(epochs) != 1:
            raise InvalidArgument(f"expected states after one number of epochs, got {sorted(epochs)}")
        found = {}
        for name, value in pieces[0].values.items():
            parts = [piece.values[name] for piece in pieces]
            widest = max(parts, key=lambda part: part.ndim)
            found[name] = (
                value if name in SHARED else torch.cat([fitted(p, widest) for p in parts], dim=_member_axis(name))
            )
        return MemberState(found, tuple(degree for piece in pieces for degree in piece.degrees))


def _member_axis(name: str) -> int:
    """Where the members are in a part of the state."""
    return 1 if name == "history" else 0

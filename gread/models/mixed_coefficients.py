"""Coefficients that members of a batch declare differently: one number or one per channel, with different links.

A batch has one parameter for all members. If some have a number and others a value per channel, it has room for the
channels; a number is stored in the first channel, and the others stay zero, without a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gread.models.resolution import FREE, NEGATED, link_of
from gread.settings.gread_settings import GreadSettings, read_equation
from rdgraph.language.tree import Kind


def shared_settings(each: Sequence[GreadSettings]) -> GreadSettings:
    """The settings of a batch: those of the first member, with coefficients wide enough for all members.

    >>> both = [GreadSettings(beta="scalar"), GreadSettings(beta="channel")]
    >>> shared_settings(both).beta, shared_settings(both[:1]).beta
    ('channel', 'scalar')
    """
    first = each[0]
    wide: dict[str, Any] = {
        name: "channel" for name in ("alpha", "beta") if len({getattr(one, name) for one in each}) > 1
    }
    if not wide:
        return first
    shared = replace(first, **wide)
    vars(shared)["system"] = read_equation(first.system, shared.alpha, shared.beta)
    return shared


@dataclass(frozen=True, eq=False)
class MixedCoefficient:
    """A coefficient of which the members `is_number` (M,) have one value for all channels, with links per member (M,).

    Several coefficients in slots have fields (M, slots) and values (M, slots, d).

    >>> mixed = MixedCoefficient.of("beta", Kind.CHANNEL, [GreadSettings(beta="scalar"), GreadSettings(beta="channel")])
    >>> mixed.values(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[0.5000, 0.5000],
            [3.0000, 4.0000]])
    """

    is_number: Tensor
    is_free: Tensor
    is_negated: Tensor

    @classmethod
    def of(cls, name: str, kind: Kind, each: Sequence[GreadSettings], device: Any = None) -> MixedCoefficient | None:
        """The coefficient of these members; None if all have the kind of the batch and the same link."""
        known = {}  # splits and seeds share their settings
        for one in each:
            if id(one) not in known:
                member_kind = one.system.letters[name]
                known[id(one)] = member_kind, link_of(one, name, member_kind)
        kinds, links = zip(*(known[id(one)] for one in each), strict=True)
        if set(kinds) == {kind} and len(set(links)) == 1:
            return None
        columns = [[k is not kind for k in kinds], [x == FREE for x in links], [x == NEGATED for x in links]]
        return cls(*torch.tensor(columns, device=device))

    def slot(self, k: int) -> MixedCoefficient:
        """One of several slots."""
        return MixedCoefficient(self.is_number[:, k], self.is_free[:, k], self.is_negated[:, k])

    def start(self, drawn: Tensor) -> Tensor:
        """The initial parameters (M, ...): the drawn numbers for free links, else zero."""
        started = torch.where(_spread(self.is_free, drawn), drawn, 0.0)
        if drawn.ndim > 1:
            started[:, 1:] = torch.where(self.is_number[:, None], 0.0, started[:, 1:])
        return started

    def values(self, parameter: Tensor) -> Tensor:
        """The values of the coefficient from its parameter."""
        value = parameter
        if parameter.ndim > self.is_number.ndim:
            value = torch.where(self.is_number[..., None], parameter[..., :1], parameter)
        bounded = torch.sigmoid(value)
        bounded = torch.where(_spread(self.is_negated, value), -bounded, bounded)
        return torch.where(_spread(self.is_free, value), value, bounded)

    def of_member(self, value: Tensor, member: int) -> Tensor:
        """The parameter of one member, (1,) or (1, d), as in a batch of its kind."""
        return value[member : member + 1, 0] if bool(self.is_number[member]) else value[member : member + 1]


def _spread(mask: Tensor, like: Tensor) -> Tensor:
    return mask.reshape(*mask.shape, *(1,) * (like.ndim - mask.ndim))


def fitted(value: Tensor, like: Tensor) -> Tensor:
    """A part of the state of members (M, ...) in the shape of another batch, whose others have or lack channels.

    >>> fitted(torch.tensor([[3.0, 0.0]]), torch.zeros(1)), fitted(torch.tensor([3.0]), torch.zeros(1, 2))
    (tensor([3.]), tensor([[3., 0.]]))
    """
    if value.ndim == like.ndim + 1:
        return value[..., 0]
    if value.ndim + 1 == like.ndim:
        rest = value.new_zeros((*value.shape, like.shape[-1] - 1))
        return torch.cat([value[..., None], rest], -1)
    return value

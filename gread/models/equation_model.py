"""`EquationBatch`: networks of one shape around different equations, all members of one batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from gread.models.features import Features
from gread.models.flow import POLYNOMIAL, QUANTUM, STEPS, Flow
from gread.models.gread_model import GREAD
from gread.models.mixed_coefficients import MixedCoefficient
from gread.models.randomness import Rates
from gread.models.resolution import FREE, NEGATED, link_of
from gread.settings.equation_settings import EquationSettings
from gread.settings.gread_settings import GreadSettings
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.solvers.member_equations import MemberEquations, MemberField
from rdgraph.run.solvers.polynomial_flow import TOLERANCE, Piece

#: Numbers that a member keeps for the gradient of its polynomial's coefficients, per sample point and channel.
SAMPLED = 120
#: States that the gradient of a term keeps per evaluation.
PER_TERM = 5
#: The share of the tolerated truncation at which a polynomial is lengthened together with those that exceed it.
SOON = 0.01
#: The fixed cost of a piece, in members; and the most changes of degree that are considered.
PIECE, MOST_RUNS = 32, 300


class EquationBatch(GREAD):
    """GREAD with a separate equation for every member; `config` is that of the first.

    A linear flow is always a polynomial of A, so all members share its products and differ only in the coefficients.
    Others are stepped together: every term is evaluated once for all members that have it. The coefficients of a member
    are in `coefficient_slots` (M, slots, 1 or d), in alphabetical order; a number is stored in the first channel.
    """

    each: tuple[EquationSettings, ...]  # type: ignore[assignment]

    def add_coefficients(self) -> None:
        """Add one parameter for the coefficients of all equations, drawn at random for free links."""
        first, device = self.each[0], self.place.device
        self._names, columns = coefficient_table(self.each, first.slots)
        self._slots = MixedCoefficient(*torch.tensor(columns, device=device).unbind(0))
        width = self.config.hidden if first.is_wide else 1
        parts = []
        for slot in range(first.slots):
            one = self._slots.slot(slot)
            parts.append(one.start(self.uniform((width,), 1.0, one.is_free)))
        self.add_parameter("coefficient_slots", torch.stack(parts, 1) if parts else self.full((0, 1), 0.0))
        is_linear = first.is_polynomial
        self.equations = MemberEquations.of(
            [one.system for one in self.each], first.slots, is_linear=is_linear,
            is_forced=is_linear and first.is_forced, device=device,
        )  # fmt: skip

    def slot_values(self) -> Tensor:
        """The values of the coefficients of all members, (M, slots, 1 or d)."""
        return self.apart_from_poles(self._slots.values(self.get_parameter("coefficient_slots")))

    @torch.no_grad()
    def coefficient_means(self) -> list[dict[str, float]]:
        """The coefficients of every member by name, as means over the channels."""
        rows = self.slot_values().mean(-1).tolist()
        return [dict(zip(names, row, strict=False)) for names, row in zip(self._names, rows, strict=True)]

    def field(self, H: Tensor) -> Any:
        """dH/dt of all members, with the operator that H implies."""
        return MemberField(self.equations, self.couple(H), self.slot_values(), self.config.hidden)

    # ------------------------------------------------------------------ how long the polynomials are
    def lengthen(self, x: Features, rates: Rates, tails: Tensor) -> None:
        """Raise the degrees of the polynomials that are too short, or soon will be, by at least half.

        Members that have diverged have no tail and get no more terms.
        """
        flow = self.chosen_flow
        with torch.no_grad():
            start = self.encode(x)
            needed = flow.degrees(self.field(start), start, rates["time"])
        short = (tails > SOON * TOLERANCE).tolist()
        raised = [
            min(flow.whole, max(degree + max(4, degree // 2), count)) if lacks else degree
            for degree, count, lacks in zip(self._degrees, needed, short, strict=True)
        ]
        self._degrees, self.degree = raised, max(raised)

    @property
    def member_degrees(self) -> tuple[int, ...]:
        """The degree of every member."""
        return tuple(self._degrees) if self._degrees else (self.degree,) * self.members

    def pieces(self) -> Sequence[Piece]:
        """Pieces for degrees in any order; a single member with many terms may be a piece."""
        return cheapest_pieces(self.member_degrees)

    def take_degrees(self, degrees: Sequence[int]) -> None:
        """Continue with the degrees of members that were trained in other ensembles."""
        if self._degrees:
            self._degrees = [max(pair) for pair in zip(self._degrees, degrees, strict=True)]
        self.degree = max(self._degrees, default=self.degree)

    def memory(self, x: Features) -> int:
        """Numbers that one member keeps for its gradient, including polynomial coefficients or every term."""
        known = super().memory(x)
        channels = self.config.hidden if self.each[0].is_wide else 1
        if self.chosen_flow.form == POLYNOMIAL:
            return known + channels * SAMPLED * (1 << (self.degree + 8).bit_length())
        flow, terms = self.chosen_flow, -(-len(self.equations.spreading.members) // self.members)
        steps = 1 if flow.schedule is None else flow.schedule.steps
        evaluations = flow.evaluations * min(self.segment or steps, steps) // steps
        return known + PER_TERM * evaluations * self.place.nodes * self.config.hidden * terms

    def flow(self, H: Tensor) -> Flow:
        """The flow to H(T): a polynomial or steps for equations that share a batch, never `solve`."""
        flow = super().flow(H)
        assert flow.form in (POLYNOMIAL, STEPS)
        return flow


@lru_cache(maxsize=256)
def cheapest_pieces(degrees: tuple[int, ...]) -> tuple[Piece, ...]:
    """The cheapest division of consecutive members into pieces: a member costs the highest degree of its piece, and
    every piece a fixed amount.

    >>> cheapest_pieces((4, 4, 4)), cheapest_pieces((64, *[8] * 30, 16, *[8] * 30))
    ((), ((0, 1, 64), (1, 62, 16)))
    """
    most, quantum = max(degrees), QUANTUM
    while True:
        levels = [min(most, -(-degree // quantum) * quantum) for degree in degrees]
        bounds = [k for k, level in enumerate(levels) if k == 0 or level != levels[k - 1]] + [len(levels)]
        if len(bounds) <= MOST_RUNS:
            break
        quantum *= 2
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(bounds)):
        highest, choices = 0, []
        for start in range(end - 1, -1, -1):
            highest = max(highest, levels[bounds[start]])
            choices.append((best[start][0] + (1 + highest) * (bounds[end] - bounds[start] + PIECE), start))
        best.append(min(choices))
    pieces, end = list[Piece](), len(bounds) - 1
    while end:
        first, last = bounds[best[end][1]], bounds[end]
        pieces.append((first, last, max(levels[first:last])))
        end = best[end][1]
    return tuple(reversed(pieces)) if len(pieces) > 1 else ()


def coefficient_table(
    each: Sequence[GreadSettings], slots: int
) -> tuple[list[tuple[str, ...]], list[list[list[bool]]]]:
    """The coefficient names of every member, and whether each slot is a number, is free, is negated (3, M, slots).

    An unused slot of a member is a number that nothing depends on.
    """
    known: dict[int, tuple[tuple[str, ...], list[list[bool]]]] = {}
    for one in each:
        if id(one) not in known:
            kinds = valued_letters(one.system)
            links = [link_of(one, name, kind) for name, kind in kinds.items()]
            rest = slots - len(kinds)
            known[id(one)] = (
                tuple(kinds),
                [
                    [kind is not Kind.CHANNEL for kind in kinds.values()] + [True] * rest,
                    [link == FREE for link in links] + [False] * rest,
                    [link == NEGATED for link in links] + [False] * rest,
                ],
            )
    rows = [known[id(one)] for one in each]
    return [names for names, _ in rows], [[columns[k] for _, columns in rows] for k in range(3)]

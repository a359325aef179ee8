"""`Box`, the answer about an invariant interval of one field."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.theory.box_faces import Interval


@dataclass(frozen=True)
class Box:
    """An invariant interval for every entry, None where there is none or none was found; `note` says which.

    `others` are further boxes. `assumes` is what the graph must be like beyond its normalisation, empty where nothing
    is needed; `with_isolated` is a box that holds with isolated nodes too. `start` is the range of H0 where it is
    narrower than the box. `where` is the condition on the coefficients under which the box is kept. Without a box,
    `regular` is one that regular graphs with edges keep, for H0 in `regular_start` where that is narrower; `is_proved`
    says that every box is left, for the coefficients `at` where some are given, else for all.
    """

    lower: sp.Expr | None
    upper: sp.Expr | None
    note: str = ""
    others: tuple[Interval, ...] = ()
    assumes: str = ""
    with_isolated: Interval | None = None
    start: Interval | None = None
    where: sp.Basic = sp.true
    regular: Interval | None = None
    is_proved: bool = False
    at: tuple[tuple[str, sp.Expr], ...] = ()
    regular_start: Interval | None = None

    @property
    def exists(self) -> bool:
        """Kept for all admissible coefficients."""
        return self.lower is not None and self.where == sp.true

    @property
    def is_decided(self) -> bool:
        """A box, perhaps for some coefficients or graphs only, or the proof that there is none."""
        return self.lower is not None or self.regular is not None or self.is_proved

    def allowing_isolated(self) -> Box:
        """What is left of it on graphs with isolated nodes."""
        if self.with_isolated is None:
            return no_box(f"no box was found for graphs with isolated nodes; without them {self.note}")
        if self.with_isolated == (self.lower, self.upper):
            return self
        return Box(*self.with_isolated, self.note, with_isolated=self.with_isolated)

    @property
    def inside(self) -> str:
        """The range of H0 for which the box is kept, in words."""
        lower, upper = self.start or (self.lower, self.upper)
        return f"[{lower}, {upper}]"


def no_box(note: str) -> Box:
    """The answer without a box, for a reason."""
    return Box(None, None, note)

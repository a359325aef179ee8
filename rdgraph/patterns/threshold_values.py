"""`Thresholds`: the values of one coefficient at which patterns begin or end, and what happens between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.html_tables import html_table
from rdgraph.patterns.dispersion import MARGINAL, STABLE, TURING, TURING_WAVE, UNDECIDED, WAVE
from rdgraph.patterns.states import shown

NO_STATE, OUTSIDE = "no steady state", "outside the assumptions"
#: The kinds of instability that make patterns of a state that is stable where all nodes agree.
PATTERNS = (TURING, WAVE, TURING_WAVE)

CALM = (STABLE, MARGINAL, UNDECIDED, NO_STATE, OUTSIDE)


@dataclass(frozen=True)
class Threshold:
    """A value of a coefficient with patterns on one side of it.

    `below` and `above` are the kinds of instability on its two sides; `lam` is the mode whose growth is zero, 0 where
    the constant mode begins to grow. An exact value is an algebraic number; others lie within a part of 1e-9.
    """

    value: sp.Expr
    lam: float
    below: str
    above: str
    is_exact: bool = True

    @property
    def unstable_side(self) -> str:
        """The side on which the steady state is unstable: "above", "below" or "both"."""
        growing = [kind not in CALM for kind in (self.below, self.above)]
        return "both" if all(growing) else "above" if growing[1] else "below"

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return f"{shown(self.value)} (at lam = {self.lam:.6g}): {self.below} below, {self.above} above"

    def to_dict(self) -> dict[str, Any]:
        """The threshold as texts and numbers."""
        return {
            "value": str(self.value), "number": float(self.value), "lam": self.lam, "below": self.below,
            "above": self.above, "unstable_side": self.unstable_side, "is_exact": self.is_exact,
        }  # fmt: skip


@dataclass(frozen=True)
class Thresholds:
    """All thresholds of one coefficient in ascending order, and what happens between them.

    `regions` are triples (lower, upper, kind at a value inside); with three or more fields patterns may be stationary
    in one part of a region and oscillate in another. With `is_complete` there are no other thresholds; `note` says why.
    """

    coefficient: str
    thresholds: tuple[Threshold, ...]
    regions: tuple[tuple[sp.Expr, sp.Expr, str], ...]
    is_complete: bool
    note: str
    assumes: str

    def __len__(self) -> int:
        return len(self.thresholds)

    def __iter__(self) -> Iterator[Threshold]:
        return iter(self.thresholds)

    def __getitem__(self, index: int) -> Threshold:
        return self.thresholds[index]

    @property
    def value(self) -> sp.Expr:
        """The critical value, at which the state loses its stability to patterns, where there is one alone."""
        critical = [threshold.value for threshold in self.thresholds if threshold.unstable_side != "both"]
        if len(critical) != 1:
            raise NotApplicable(
                f"expected one critical value of {self.coefficient}, got {len(critical)}; look at the thresholds"
            )
        return critical[0]

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        lines = [f"{self.coefficient} = {threshold}" for threshold in self.thresholds] or [self._none()]
        lines += [f"{shown(low)} < {self.coefficient} < {shown(high)}: {kind}" for low, high, kind in self.regions]
        lines.append(f"{'complete' if self.is_complete else 'not proved to be complete'}: {self.note}")
        return "\n".join([*lines, f"assumes: {self.assumes}"])

    def _none(self) -> str:
        kinds = list(dict.fromkeys(kind for _, _, kind in self.regions))
        if len(kinds) == 1:
            return f"no threshold of {self.coefficient}: {kinds[0]} throughout"
        return (
            f"no threshold of {self.coefficient}: no value makes patterns of a state that is stable without transport"
        )

    def __repr__(self) -> str:
        return f"Thresholds of {self.coefficient}\n{self}"

    def _repr_html_(self) -> str:
        rows = [(f"{shown(low)} to {shown(high)}", kind) for low, high, kind in self.regions]
        return html_table(f"patterns by {self.coefficient}", rows, footer=f"{self.note}; assumes: {self.assumes}")

    def to_dict(self) -> dict[str, Any]:
        """Thresholds and regions as texts and numbers."""
        return {
            "coefficient": self.coefficient,
            "thresholds": [threshold.to_dict() for threshold in self.thresholds],
            "regions": [[str(low), str(high), kind] for low, high, kind in self.regions],
            "is_complete": self.is_complete, "note": self.note, "assumes": self.assumes,
        }  # fmt: skip

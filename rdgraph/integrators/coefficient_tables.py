"""`CoefficientTable`: expressions in the letters of many equations, evaluated for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
import torch
from torch import Tensor

from rdgraph.lowering.torch_source import coefficient_code, evaluated

#: What the letter at a place is called in the text of an expression.
_PLACE = "place_{}"
#: Expressions of a member, and the letters that they are written in, by place.
Row = tuple[Sequence[sp.Expr], Sequence[str]]


@dataclass(frozen=True, eq=False)
class _Curved:
    """An expression that is no sum of letters, for the members `members` (m,), at the entries `entries` (m,) of the
    flattened table, with factors (m, 1)."""

    code: str
    places: tuple[int, ...]
    members: Tensor
    entries: Tensor
    factors: Tensor


@dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Expressions (M, C) in letters (M, slots, 1 or d): constants, multiples of letters, and whatever else there is.

    >>> a, b = sp.symbols("a b")
    >>> table = CoefficientTable.of([([2 * a - 1, b], ("a", "b")), ([a, a**2], ("a",))], slots=2)
    >>> table.values(torch.tensor([[3.0, 4.0], [5.0, 0.0]])[..., None])[..., 0]
    tensor([[ 5.,  4.],
            [ 5., 25.]], dtype=torch.float64)
    """

    constants: Tensor
    weights: Tensor
    curved: tuple[_Curved, ...]

    @classmethod
    def of(cls, rows: Sequence[Row], slots: int, device: Any = None) -> CoefficientTable:
        """The table of the members' expressions; rows that are the same object are read once."""
        count = len(rows[0][0])
        known: dict[tuple[int, int], tuple[list[list[float]], list[tuple[int, str, tuple[int, ...], float]]]] = {}
        numbers, further = [], dict[tuple[str, tuple[int, ...]], list[tuple[int, int, float]]]()
        for member, (expressions, letters) in enumerate(rows):
            key = id(expressions), id(letters)
            if key not in known:
                known[key] = _read(expressions, letters, slots)
            own, curved = known[key]
            numbers.append(own)
            for column, code, places, factor in curved:
                further.setdefault((code, places), []).append((member, member * count + column, factor))
        table = torch.tensor(numbers, dtype=torch.float64, device=device).reshape(len(rows), count, slots + 1)
        made = []
        for (code, places), found in sorted(further.items()):
            members, entries, factors = zip(*found, strict=True)
            made.append(
                _Curved(
                    code, places, torch.tensor(members, device=device), torch.tensor(entries, device=device),
                    torch.tensor(factors, dtype=torch.float64, device=device)[:, None],
                )
            )  # fmt: skip
        return cls(table[:, :, :1].contiguous(), table[:, :, 1:].contiguous(), tuple(made))

    def values(self, letters: Tensor) -> Tensor:
        """The values (M, C, 1 or d), float64."""
        wide = letters.double()
        found = self.constants + self.weights @ wide
        for one in self.curved:
            own = wide.index_select(0, one.members)
            value = evaluated(one.code, {_PLACE.format(place): own[:, place] for place in one.places})
            flat = found.flatten(0, 1).index_add(0, one.entries, one.factors * value)
            found = flat.view_as(found)
        return found


def _read(
    expressions: Sequence[sp.Expr], letters: Sequence[str], slots: int
) -> tuple[list[list[float]], list[tuple[int, str, tuple[int, ...], float]]]:
    """One row for every expression, constant first; what is no multiple of a letter as column, code, places, factor."""
    places = {name: place for place, name in enumerate(letters)}
    table, curved = [[0.0] * (slots + 1) for _ in expressions], []
    for column, expression in enumerate(expressions):
        for term in sp.Add.make_args(sp.expand(expression)):
            number, rest = term.as_coeff_Mul()
            if not rest.free_symbols:
                table[column][0] += float(term)
            elif isinstance(rest, sp.Symbol):
                table[column][1 + places[rest.name]] += float(number)
            else:
                used = {symbol: places[symbol.name] for symbol in rest.free_symbols}
                renamed = {symbol: sp.Symbol(_PLACE.format(place), real=True) for symbol, place in used.items()}
                code = coefficient_code(rest.xreplace(renamed))
                curved.append((column, code, tuple(sorted(used.values())), float(number)))
    return table, curved

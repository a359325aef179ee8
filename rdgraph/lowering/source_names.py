"""What the C source of a field depends on beside the equations, and the names of the arrays in it."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy as sp

from rdgraph.algebra.normal_form import TIME
from rdgraph.errors import InvalidArgument
from rdgraph.lowering.c_expressions import expression_text, number_text


@dataclass(frozen=True)
class Layout:
    """Types and shapes, never values.

    `operators` has the letters of the operators with the type of their indices, `axes` says of every coefficient
    whether it varies along the nodes and along the channels; with `has_degree`, L = D - A is a letter of its own.
    `run_degrees` are the degrees of the runs that the rows of the only operator form, None where they form none.
    """

    real: str
    channels: int
    operators: tuple[tuple[str, str], ...]
    has_degree: bool
    run_degrees: tuple[int, ...] | None
    axes: tuple[tuple[str, tuple[bool, bool]], ...]

    @property
    def laplacians(self) -> dict[str, str]:
        """Letters D - A, with the letter of their A."""
        return {"L": "A"} if self.has_degree else {}

    def axes_of(self, expression: sp.Expr) -> tuple[bool, bool]:
        """The axes along which an expression in the coefficients varies."""
        known = dict(self.axes)
        own = [known[s.name] for s in expression.free_symbols - {TIME}]
        return any(a for a, _ in own), any(b for _, b in own)


@dataclass
class SourceNames:
    """The names that a source uses: coefficients c0, c1, ..., matrices w0, ..., states, starts and stored arrays."""

    layout: Layout
    fields: tuple[str, ...]
    starts: tuple[str, ...]
    stored: tuple[str, ...]
    coefficients: dict[sp.Expr, str] = field(default_factory=dict)
    timed: dict[sp.Expr, str] = field(default_factory=dict)
    matrices: dict[sp.Expr, str] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)

    def at(self, array: str, row: str, channel: str = "c") -> str:
        """An entry of a state, a start or a stored array."""
        for names, base in ((self.fields, "state"), (self.starts, "start")):
            if array in names:
                block = names.index(array)
                return f"p->{base}[{row} * WIDTH + {f'{block} * CHANNELS + ' if block else ''}{channel}]"
        return f"p->{array}[{row} * CHANNELS + {channel}]"

    def coefficient(self, expression: sp.Expr, loads: dict[str, str]) -> str:
        """The name of a coefficient in an entry, which loads it; numbers stand as they are."""
        if expression.is_number:
            return number_text(expression)
        if expression.has(TIME):
            return self._timed(expression, loads)
        name = self.coefficients.setdefault(expression, f"c{len(self.coefficients)}")
        along_nodes, along_channels = self.layout.axes_of(expression)
        index = {(True, True): "i * CHANNELS + c", (True, False): "i", (False, True): "c", (False, False): "0"}
        loads[name] = f"p->{name}[{index[along_nodes, along_channels]}]"
        return name

    def _timed(self, expression: sp.Expr, loads: dict[str, str]) -> str:
        """The name of a coefficient that varies with the time, computed from those that do not."""
        loads.setdefault("t", "(real)p->t")
        own = {s: sp.Symbol(self.coefficient(s, loads)) for s in expression.free_symbols - {TIME}}
        name = self.timed.setdefault(expression, f"k{len(self.timed)}")
        loads[name] = expression_text(expression.xreplace(own))
        return name

    def matrix(self, matrix: sp.Expr) -> str:
        """The name of a mixing matrix."""
        if matrix.has(TIME):
            raise InvalidArgument(
                f"expected mixing matrices that stay as they are, got {matrix}, which depends on the time; evaluate "
                "the field itself"
            )
        return self.matrices.setdefault(matrix, f"w{len(self.matrices)}")

    def handed(self) -> list[tuple[str, str]]:
        """Type and name of the arrays that are handed over, in order."""
        arrays = [("real", "start")]
        arrays += [("real", name) for name in (*self.coefficients.values(), *self.matrices.values())]
        for letter, index in self.layout.operators:
            arrays += [(kind, f"{letter}_{part}") for kind, part in self._operator_parts(index)]
        return arrays + [("real", f"{letter}_degree") for letter in self.layout.laplacians]

    def _operator_parts(self, index: str) -> list[tuple[str, str]]:
        if self.layout.run_degrees is None:
            return [(index, "rows"), (index, "columns"), ("real", "weights")]
        whole = [("int64_t", part) for part in ("count", "starts", "entries", "offsets")]
        return [*whole, ("int32_t", "degrees"), ("real", "weights")]

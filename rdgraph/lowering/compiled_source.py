"""The C source of a field: one function per pass over the rows, and Runge-Kutta steps around them.

The frame (`rdgraph/data/compiled_frame.c`) is the same for every field; the members of its structure, the elementwise
functions and the passes are written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template

import sympy as sp

from rdgraph.algebra.factored_form import factored_form
from rdgraph.algebra.normal_form import State
from rdgraph.lowering.c_expressions import function_source
from rdgraph.lowering.entry_source import pass_text
from rdgraph.lowering.loop_source import loop_source
from rdgraph.lowering.lowering_stages import lowering_algebra
from rdgraph.lowering.row_plan import RowPlan
from rdgraph.lowering.source_names import Layout, SourceNames
from rdgraph.lowering.torch_source import matrix_code
from rdgraph.syntax.reader import start_of
from rdgraph.syntax.unfolding import unfolded
from rdgraph.systems.system import System

#: Rows that one thread takes at a time; fixed, so that no bit depends on the number of threads.
BLOCK = 8192
#: Single letters that the source uses itself: the time, the member, the node, the channel, and C's imaginary unit.
_TAKEN = frozenset("tpicI")


@dataclass(frozen=True)
class CompiledSource:
    """The source, and the coefficients, matrices and stored arrays in the order in which it takes them."""

    text: str
    coefficients: tuple[sp.Expr, ...]
    matrices: tuple[sp.Expr, ...]
    stored: tuple[str, ...]


def compiled_source(system: System, layout: Layout) -> CompiledSource:
    """The C source of all fields of a system; its coefficients are in the symbols of `coefficient_symbol`."""
    own = _state_names(system)
    plan = _plan(system, layout, own)
    starts = tuple(own[start_of(state)] for state in system.fields)
    names = SourceNames(
        layout, tuple(own[state] for state in system.fields), starts, tuple(x.name for x in plan.stored)
    )
    passes = [pass_text(plan, names, level) for level in range(1, plan.passes + 1)]
    loops = ["\n".join(text.function()) + "\n\n" + loop_source(text, names) for text in passes]
    calls = [f"    RUN_PASS(pass_{text.level})" for text in passes]
    pieces = {
        "equation": system.text,
        "real": layout.real,
        "channels": layout.channels,
        "width": layout.channels * len(system.fields),
        "block": BLOCK,
        "stored_count": len(plan.stored),
        "functions": "\n".join(map(function_source, names.functions)),
        "passes": "\n".join(loops),
        "calls": "\n".join(calls),
    }
    text = Template(_frame()).substitute(pieces, **_member_pieces(names))
    return CompiledSource(text, tuple(names.coefficients), tuple(names.matrices), names.stored)


def _plan(system: System, layout: Layout, own: dict[str, str]) -> RowPlan:
    """The passes of all fields, from their factored forms."""
    algebra = lowering_algebra(system, layout.has_degree)
    forms = {own[state]: factored_form(unfolded(tree), algebra) for state, tree in system.flow.items()}
    return RowPlan(forms, {State(name): short for name, short in own.items()}, algebra.kinds)


def _state_names(system: System) -> dict[str, str]:
    """Names in C of the states and their starts: single letters as they are, longer ones with an underscore behind.

    Nothing that C, its headers or the frame call something ends in one.
    """
    names: dict[str, str] = {}
    for state in (*system.fields, *map(start_of, system.fields)):
        name = state.replace("'", "_rate")
        name = name if len(name) == 1 and name not in _TAKEN else f"{name}_"
        while name in names.values():
            name += "_"
        names[state] = name
    return names


def _member_pieces(names: SourceNames) -> dict[str, str]:
    """The structure with all arrays of one member, how it is filled, and what the coefficients are."""
    handed = names.handed()
    pointers = ["const real *restrict state;", "real *restrict out;"]
    pointers += [f"const {kind} *restrict {name};" for kind, name in handed]
    pointers += [f"real *restrict {name};" for name in names.stored]
    filling = [f"p.{name} = (const {kind} *)arrays[{k}] + m * strides[{k}];" for k, (kind, name) in enumerate(handed)]
    filling += [f"p.{name} = work + {k} * nodes * CHANNELS;" for k, name in enumerate(names.stored)]
    notes = [(name, str(expression)) for expression, name in names.coefficients.items()]
    notes += [(name, matrix_code(matrix)) for matrix, name in names.matrices.items()]
    return {
        "members": "\n".join(f"    {line}" for line in pointers),
        "filling": "\n".join(f"    {line}" for line in filling),
        "coefficients": "".join(f"// {name} = {text}\n" for name, text in notes),
    }


@cache
def _frame() -> str:
    return resources.files("rdgraph").joinpath("data", "compiled_frame.c").read_text(encoding="utf-8")

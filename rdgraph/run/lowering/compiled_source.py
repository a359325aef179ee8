"""The C source of a field: one function per pass over the rows, and Runge-Kutta steps around them.

The frame (`rdgraph/data/compiled_frame.c`) is the same for every field; the members of its structure, the elementwise
functions and the passes are written here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Template
from textwrap import indent

import sympy as sp

from rdgraph.language.factored_form import factored_form
from rdgraph.language.normal_form import State
from rdgraph.language.reader import start_of
from rdgraph.language.unfolding import unfolded
from rdgraph.run.lowering.c_expressions import Layout, SourceNames, function_source
from rdgraph.run.lowering.entry_source import PassText, RowPlan, pass_text
from rdgraph.run.lowering.lowering_stages import lowering_algebra
from rdgraph.run.lowering.torch_source import matrix_code
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- loop source
# The C loops of one pass, from `rdgraph/data/compiled_loops.c`.

#: Rows of a run with at most this degree have a specialised loop.
MOST_UNROLLED = 12


def loop_source(text: PassText, names: SourceNames) -> str:
    """The function of one pass over the rows from `begin` to `end`."""
    simd = "\n    SIMD" if names.layout.channels == 1 else ""
    if names.layout.run_degrees is not None and text.gathers:
        return _runs(text, names, names.layout.run_degrees, simd)
    body = [*_sums(text)]
    for letter, index in names.layout.operators:
        added = [
            f"{name}[c] += weight * {names.at(array, 'j')};"
            for (state, array), name in text.gathers.items()
            if state == letter
        ]
        if added:
            body.append(_loop("entries").format(index=index, letter=letter, added=_indented(added, 8)))
    body += _entry(text, names)
    return _loop("rows").format(level=text.level, simd="" if text.gathers else simd, body=_indented(body, 8)) + "\n"


def _runs(text: PassText, names: SourceNames, degrees: tuple[int, ...], simd: str) -> str:
    (letter,) = dict.fromkeys(letter for letter, _ in text.gathers)
    added = [
        f"{name}[c] += weights[k] * {names.at(array, '(i + offsets[k])')};" for (_, array), name in text.gathers.items()
    ]
    cases = [f"case {k}: WITH_CONSTANTS(run_{text.level}, {k}) break;" for k in degrees if 0 < k <= MOST_UNROLLED]
    return _loop("runs").format(
        level=text.level, letter=letter, simd=simd, sums=_indented(_sums(text), 8), added=_indented(added, 16),
        body=_indented(_entry(text, names), 8), cases=_indented(cases, 8),
    ) + "\n"  # fmt: skip


def _sums(text: PassText) -> list[str]:
    return [f"real {name}[CHANNELS] = {{0}};" for name in text.gathers.values()]


def _entry(text: PassText, names: SourceNames) -> list[str]:
    """Mixed channels, and then every entry of a row."""
    mixed = [
        _loop("mixed").format(name=name, matrix=matrix, value=names.at(array, "i", "k"))
        for (matrix, array), name in text.mixes.items()
    ]
    given = ["p", "i", "c", *(f"{name}[c]" for name in text.sums)]
    return [*mixed, f"EACH_CHANNEL entry_{text.level}({', '.join(given)});"]


def _indented(lines: Iterable[str], width: int) -> str:
    return indent("\n".join(lines), " " * width)


# ---------------------------------------------------------------------- compiled source
#: Rows that one thread processes at a time; fixed, so that no bit depends on the number of threads.
BLOCK = 8192
#: Single letters used by the source: the time, the member, the node, the channel, and C's imaginary unit.
_TAKEN = frozenset("tpicI")


@dataclass(frozen=True)
class CompiledSource:
    """The source, with its coefficients, matrices and stored arrays in the order of its arguments."""

    text: str
    coefficients: tuple[sp.Expr, ...]
    matrices: tuple[sp.Expr, ...]
    stored: tuple[str, ...]


def compiled_source(system: System, layout: Layout) -> CompiledSource:
    """The C source of all fields of a system; its coefficients are in the symbols of `coefficient_symbol`."""
    states = _state_names(system)
    plan = _plan(system, layout, states)
    starts = tuple(states[start_of(state)] for state in system.fields)
    names = SourceNames(
        layout, tuple(states[state] for state in system.fields), starts, tuple(x.name for x in plan.stored)
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
    text = Template(_shipped("compiled_frame.c")).substitute(pieces, **_member_pieces(names))
    return CompiledSource(text, tuple(names.coefficients), tuple(names.matrices), names.stored)


def _plan(system: System, layout: Layout, states: dict[str, str]) -> RowPlan:
    """The passes of all fields, from their factored forms."""
    algebra = lowering_algebra(system, layout.has_degree)
    forms = {states[state]: factored_form(unfolded(tree), algebra) for state, tree in system.flow.items()}
    return RowPlan(forms, {State(name): short for name, short in states.items()}, algebra.kinds)


def _state_names(system: System) -> dict[str, str]:
    """Names in C of the states and their starts: single letters unchanged, longer names with a trailing underscore.

    No name of C, its headers or the frame ends in an underscore.
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
    """The structure with all arrays of one member, the code that fills it, and the coefficients."""
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
def _loop(name: str) -> str:
    """A piece of `rdgraph/data/compiled_loops.c`, up to the next one."""
    return _shipped("compiled_loops.c").partition(f"// ---- {name}\n")[2].partition("\n\n// ----")[0].rstrip("\n")


@cache
def _shipped(file: str) -> str:
    return resources.files("rdgraph").joinpath("data", file).read_text(encoding="utf-8")

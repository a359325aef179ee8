"""The text and the LaTeX of equations: one line without a left side where it is dH/dt, else u' = ...; v' = ..."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rdgraph.syntax.printer import to_latex
from rdgraph.syntax.tree import Kind, field
from rdgraph.systems.equation import Equation
from rdgraph.systems.learned_calls import learned_functions


def is_plain(equations: Sequence[Equation]) -> bool:
    """Whether they are written as a right-hand side alone."""
    return len(equations) == 1 and equations[0].left == "H'"


def system_text(equations: Sequence[Equation]) -> str:
    """The equations as they were written, in one line."""
    if is_plain(equations):
        return equations[0].written
    return "; ".join(map(str, equations))


def declarations(
    equations: Sequence[Equation], usual: Mapping[str, Kind], coefficients: Mapping[str, Kind]
) -> list[str]:
    """The declared functions, each once, the learned ones, and the kinds that are not the usual ones."""
    spelled = [equation.spelling.declarations() for equation in equations if equation.spelling]
    notes = list(dict.fromkeys(note for part in spelled for note in part))
    notes += map(str, learned_functions(equations).values())
    return notes + [f"{name} {kind}" for name, kind in coefficients.items() if usual.get(name) is not kind]


def system_latex(equations: Sequence[Equation]) -> str:
    r"""All equations with their left sides, one below the other.

    >>> from rdgraph.syntax.reader import read_expression
    >>> system_latex([Equation("H", 2, read_expression("-beta*H"))])
    '\\ddot{\\mathbf{H}} = -\\beta \\mathbf{H}'
    """
    marks = {1: r"\dot", 2: r"\ddot"}
    lines = [(f"{marks[e.order]}{{{to_latex(field(e.field))}}}", e.latex()) for e in equations]
    if len(lines) == 1:
        return " = ".join(lines[0])
    body = r" \\ ".join(f"{left} &= {right}" for left, right in lines)
    return rf"\begin{{aligned}} {body} \end{{aligned}}"

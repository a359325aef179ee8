"""`parse`: a text, a sympy expression or a catalogue name as a `System`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import sympy as sp

from rdgraph.errors import InvalidArgument, LanguageError
from rdgraph.language.reader import PRIME, Vocabulary
from rdgraph.language.sympy_form import from_sympy
from rdgraph.language.tree import Kind
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.equation_text import as_texts, declared_kinds, read_system
from rdgraph.systems.further_operators import FurtherOperators
from rdgraph.systems.system import System

_Rest = ParamSpec("_Rest")
_Answer = TypeVar("_Answer")


def parse(
    source: str | sp.Basic | System | Sequence[str] | Mapping[str, str],
    kinds: Mapping[str, str] | Iterable[str] | None = None,
    *,
    assume: Iterable[str] | str = (),
    operators: Mapping[str, str] | None = None,
) -> System:
    """The `System` of one line of maths, or of one line for each of several fields.

    Args:
        source: a text in the language, a sympy expression, a name of the catalogue, or a `System`; for several fields
            equations separated by `;`, a list of them, or right-hand sides by field, {"u": "-u"}, or by left-hand
            side, {"u''": "-u"}. After `where` a text declares kinds ("k channel"), further operators
            ("B antisymmetric"), assumptions ("k < 0") and functions ("g = H**2/(1 + H)").
        kinds: kinds of coefficients, `{"k": "channel"}`, or just `["k"]` for scalars.
        assume: texts such as "beta<0", "beta real", "beta <= alpha".
        operators: what is known of operators besides A, `{"B": "antisymmetric"}`.

    Returns:
        The system; a right-hand side alone is that of dH/dt.

    Raises:
        LanguageError: the text cannot be read; the error gives the column.
        AssumptionError: the assumptions cannot be read or contradict each other.
        InvalidArgument: the source is neither a text, a sympy expression nor a `System`.

    >>> import rdgraph as rd
    >>> rd.parse("-alpha*L@H + beta*(A@H - A@A@H)").symbol()
    -beta*lam**2 + lam*(-alpha + beta)
    >>> rd.parse("BS") == rd.parse("-alpha*L@H + beta*(A@H - A@A@H)")
    True
    >>> rd.parse("-alpha*L@H + k*H", ["k"], assume="k<0").assumptions.sign("k")
    'negative'
    >>> rd.parse(["u' = a - u + u**2*v - Du*L@u", "v' = b - u**2*v - Dv*L@v"]).fields
    ('u', 'v')
    >>> rd.parse("H'' = -gamma*H - alpha*H' + tanh(A@H)").fields
    ('H', "H'")
    """
    declared = declared_kinds(kinds)
    assumed = [assume] if isinstance(assume, str) else as_texts(assume, "assumptions")
    further = FurtherOperators.of(operators or {})
    if isinstance(source, System):
        return source.declared(declared, assumed, further)
    if isinstance(source, sp.Basic):
        letters = {**declared, **dict.fromkeys(further.names, Kind.OPERATOR)}
        return System.build(from_sympy(source, Vocabulary.standard(letters)), declared, assumed, operators=further)
    text = _one_text(source)
    if text is None:
        raise InvalidArgument(
            f"expected text, a sympy expression or a System, got {type(source).__name__}; see rdgraph.parse"
        )
    try:
        return read_system(text, declared, assumed, catalogue, further)
    except LanguageError as problem:
        if (near := catalogue.near(text)) is None:
            raise
        remedy = f"did you mean {near!r} of the catalogue?  {problem.remedy}"
        raise LanguageError(
            problem.text, problem.offset, expected=problem.expected, got=problem.got, remedy=remedy
        ) from None


def _one_text(source: Any) -> str | None:
    """Equations given as a list or by field as one text; None for other sources."""
    if isinstance(source, str):
        return source
    if isinstance(source, Mapping):
        source = [f"{_left(name)} = {right}" if isinstance(name, str) and isinstance(right, str) else None
                  for name, right in source.items()]  # fmt: skip
    is_list = isinstance(source, list | tuple) and source and all(isinstance(line, str) for line in source)
    return "; ".join(line.rstrip().removesuffix(";") for line in source) if is_list else None


def _left(name: str) -> str:
    """The left-hand side of a key: u and u' mean the first derivative, u'' the second."""
    return name if name.rstrip().endswith(PRIME) else name + PRIME


def reads_system(
    function: Callable[Concatenate[System, _Rest], _Answer],
) -> Callable[Concatenate[System | str, _Rest], _Answer]:
    """A decorator: the first argument, a `System`, may also be anything `parse` reads.

    >>> @reads_system
    ... def order(system):
    ...     return len(system.coefficients)
    >>> order("BS"), order("-alpha*L@H"), order(parse("BS"))
    (2, 1, 2)
    """

    @wraps(function)
    def read(system: System | str, *args: _Rest.args, **kwargs: _Rest.kwargs) -> _Answer:
        return function(system if isinstance(system, System) else parse(system), *args, **kwargs)

    return cast("Callable[Concatenate[System | str, _Rest], _Answer]", read)  # which `system=` may name too

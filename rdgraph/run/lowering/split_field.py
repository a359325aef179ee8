"""A field in two parts: the linear part p(X) of every state in itself, with X = A or L, and the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import sympy as sp
import torch
from torch import Tensor

from rdgraph.language.factored_form import Term, terms_of
from rdgraph.language.normal_form import H, State
from rdgraph.language.reader import TIME_LETTER
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.field_blocks import side_by_side
from rdgraph.run.lowering.lowering_stages import Code, coefficient_letters, compiled, lowered_forms
from rdgraph.run.lowering.product_plan import schedule
from rdgraph.run.lowering.torch_source import GeneratedFunction, module_source
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.systems.system import System


@dataclass(frozen=True)
class SplitStages:
    """The operator X, the coefficients of its powers by state, and the function of the rest."""

    letter: str
    generators: tuple[dict[int, sp.Expr], ...]
    remainders: tuple[sp.Expr, ...]
    function: GeneratedFunction
    code: Code


@lru_cache(maxsize=256)
def split_stages(system: System, keeps_laplacian: bool) -> SplitStages:
    """The two parts of a system; X is L where L = D - A acts on the field of an equation in that equation, else A."""
    forms = lowered_forms(system, system.flow, keeps_laplacian)
    kinds = dict(system.letters)
    states = [H] if len(forms) == 1 else [State(name) for name in forms]
    letter = "L" if any(t.word and _is_power(t, s, "L") for f, s in _pairs(forms, states) for t in f) else "A"
    generators, remainders = [], {}
    for name, (terms, state) in zip(forms, _pairs(forms, states), strict=True):
        linear: dict[int, sp.Expr] = {}
        rest = [term for term in terms if not _is_power(term, state, letter)]
        for term in (term for term in terms if _is_power(term, state, letter)):
            constant, other = _constant_part(term.coefficient, kinds)
            linear |= {len(term.word): constant} if constant != 0 else {}
            rest += [replace(term, coefficient=other)] if other != 0 else []
        generators.append(linear)
        remainders[name] = sp.Add(*(term.expression() for term in rest))
    function = schedule("remainder", remainders, kinds)
    source = module_source(system.text, "The part that is stepped.", list(coefficient_letters(system)), [function],
                           is_packed=len(forms) > 1)  # fmt: skip
    return SplitStages(letter, tuple(generators), tuple(remainders.values()), function, compiled(source))


def _pairs(forms: Mapping[str, sp.Expr], states: list[State]) -> list[tuple[tuple[Term, ...], State]]:
    return [(terms_of(form), state) for form, state in zip(forms.values(), states, strict=True)]


def _is_power(term: Term, state: State, letter: str) -> bool:
    """Whether a term is a coefficient times letter^k of the state itself."""
    return bool(term.atom == state and set(term.word) <= {letter})


def _constant_part(coefficient: sp.Expr, kinds: Mapping[str, Kind]) -> tuple[sp.Expr, sp.Expr]:
    """The scalar and channel terms of a coefficient that do not depend on the time, and the rest."""

    def is_constant(term: sp.Expr) -> bool:
        letters = {s.name for s in term.free_symbols}
        return TIME_LETTER not in letters and all(kinds[x] in (Kind.SCALAR, Kind.CHANNEL) for x in letters)

    terms = sp.Add.make_args(sp.expand(coefficient))
    constant = [term for term in terms if is_constant(term)]
    return sp.Add(*constant), sp.Add(*(term for term in terms if term not in constant))


class SplitField:
    """f(t, H) = p(X)H + r(t, H), p with a coefficient for each state.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(3).operator("row", dtype=torch.float64)
    >>> pair = rd.lower("u' = u*v - Du*L@u; v' = 1 - v - u*v - Dv*L@v", op, {"Du": 0.1, "Dv": 2.0})
    >>> parts = SplitField(pair)
    >>> parts.letter, parts.degree, parts.remainder_products
    ('A', 1, 0)
    >>> H = torch.rand(3, 2, dtype=torch.float64)
    >>> torch.allclose(parts.linear(H) + parts.remainder(None, H), pair(None, H))
    True
    """

    def __init__(self, field: VectorField) -> None:
        self.field = field
        self.stages = split_stages(field.system, field.operator.degree is not None)
        self._generators: dict[int, tuple[Tensor, ...]] = {}

    @property
    def letter(self) -> str:
        """A, or L where that is D - A."""
        return self.stages.letter

    @property
    def degree(self) -> int:
        """The highest power of X, and the products of `linear`."""
        return max((k for powers in self.stages.generators for k in powers), default=0)

    @property
    def remainder_products(self) -> int:
        return self.stages.function.products

    def generator(self, width: int) -> tuple[Tensor, ...]:
        """The coefficients of the powers of X for states of `width` channels each, (..., 1, states*width), float64."""
        if width not in self._generators:
            powers = range(self.degree + 1)
            self._generators[width] = tuple(self._coefficient(k, width) for k in powers)
        return self._generators[width]

    def _coefficient(self, power: int, width: int) -> Tensor:
        values = [self.field.value(powers.get(power, sp.S.Zero)) for powers in self.stages.generators]
        return side_by_side([x.double() for x in values], width)

    def linear(self, x: Tensor) -> Tensor:
        """p(X)x, by Horner's rule."""
        coefficients = [c.to(torch.promote_types(x.dtype, torch.float32)) for c in self._of(x)]
        total = coefficients[-1] * x
        for coefficient in reversed(coefficients[:-1]):
            total = self.field.operator_on(self.letter, total) + coefficient * x
        return total.to(x.dtype)

    def _of(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.generator(self.field.blocks.width(x))

    def remainder(self, t: Any, x: Tensor) -> Tensor:
        """r(t, x), the rest."""
        return self.field.evaluate(self.stages.function, self.stages.code, t, x)

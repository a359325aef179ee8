"""An equation with an unknown function, `... + phi(H)`: its known terms along states, and the function put in."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import sympy as sp
import torch

from rdgraph.algebra.normal_form import H
from rdgraph.distillation.flow_fits import AffineTerms
from rdgraph.distillation.formula_letters import with_function
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.lowering.coefficients import valued_letters
from rdgraph.lowering.vector_field import lower
from rdgraph.syntax.tree import Kind
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

Array = np.ndarray
#: Nodes up to which dense matrices are made.
MOST_NODES = 600
_CALL = re.compile(r"(?<![\w'])([^\W\d]\w*)\(")


@dataclass(frozen=True)
class UnknownFunction:
    """An equation of one field in which `name` is added once, as in -alpha*L@H + phi(H).

    >>> UnknownFunction.of("-alpha*L@H + phi(H)", "phi").coefficients
    ('alpha',)
    """

    equation: str
    name: str
    coefficients: tuple[str, ...]

    @classmethod
    def of(cls, equation: str, name: str) -> UnknownFunction:
        """Check that the function is added, and nothing else is done with it."""
        if name not in _CALL.findall(equation):
            raise InvalidArgument(f"expected {name}(H) in the equation, got {equation!r}; add it, or say function=")
        level, slope = (parse(with_function(equation, name, body, [f"{_LETTER} scalar"])) for body in (_LEVEL, _SLOPE))
        if not level.is_single or level.is_noisy:
            raise NotApplicable(f"expected one field without noise, got {equation!r}; write the equation of one field")
        letters = valued_letters(level)
        names = tuple(n for n in letters if n != _LETTER)
        for n in names:
            if letters[n] is not Kind.SCALAR:
                raise NotApplicable(f"expected scalar coefficients beside {name}, got {n} {letters[n].value}; fix it")
        rest = parse(with_function(equation, name, "0*H"))
        for factor, made in ((sp.S.One, level), (H, slope)):
            if not _adds(rest, made, factor):
                raise NotApplicable(
                    f"expected {name} to be added once, as in -alpha*L@H + {name}(H), got {equation!r}; "
                    "write the equation so"
                )
        return cls(equation, name, names)

    def terms(self, operator: Operator, states: Array, start: Array) -> tuple[Array, Array]:
        """What stands beside the function along states (points, n, d): without coefficients, and with each of them.

        The terms must be linear in the coefficients.
        """
        system = parse(with_function(self.equation, self.name, "0*H"))
        names = self.coefficients
        along = torch.as_tensor(states, dtype=torch.float64)

        def at(values: Array) -> Array:
            given = dict(zip(names, values.tolist(), strict=True))
            field = lower(system, operator, {n: v for n, v in given.items() if n in valued_letters(system)})
            if field.uses_initial:
                field = field.bind(torch.as_tensor(start, dtype=torch.float64))
            with torch.no_grad():
                return field(None, along).numpy()

        ones = np.ones(len(names))
        base = at(ones)
        terms = [at(ones + row) - base for row in np.eye(len(names))]
        known = base - sum(terms) if terms else base
        probe = np.linspace(0.5, 2.0, len(names))
        made = known + sum(value * term for value, term in zip(probe, terms, strict=True))
        if not np.allclose(made, at(probe), rtol=1e-8, atol=1e-8 * (1 + np.abs(made).max())):
            raise NotApplicable(f"expected terms that are linear in {', '.join(names)}, got {self.equation!r}")
        return known, np.stack(terms) if terms else np.zeros((0, *known.shape))


def affine_terms(unknown: UnknownFunction, operator: Operator, channels: int) -> AffineTerms | None:
    """The terms beside the function as matrices and shifts; None where they are not affine in the state, or use H0."""
    system = parse(with_function(unknown.equation, unknown.name, "0*H"))
    n = operator.num_nodes
    if not system.is_autonomous or "H0" in system.letters or n > MOST_NODES:
        return None
    rng = np.random.default_rng(0)
    probes = np.concatenate([np.zeros((1, n, 1)), np.eye(n)[:, :, None], rng.standard_normal((1, n, 1))])
    known, terms = unknown.terms(operator, probes, probes[0])
    every = np.concatenate([known[None], terms])
    shifts = every[:, 0]
    matrices = (every[:, 1:-1] - shifts[:, None])[..., 0].swapaxes(1, 2)
    if not np.allclose(matrices @ probes[-1] + shifts, every[:, -1], rtol=1e-8, atol=1e-10):
        return None
    return AffineTerms(matrices, np.repeat(shifts, channels, -1))


#: A letter that no equation has, for functions that are constant and linear.
_LETTER = "level_of_function"
_LEVEL, _SLOPE = f"{_LETTER}*H**0", f"{_LETTER}*H"


def _adds(rest: System, made: System, factor: sp.Expr) -> bool:
    """Whether the second right-hand side is the first and the letter times a factor."""
    letter = next((s for s in made.normal.free_symbols if s.name == _LETTER), None)
    return letter is not None and sp.expand(made.normal - rest.normal - letter * factor) == 0

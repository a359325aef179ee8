"""The stages of lowering: a system becomes normal forms, a plan of products, torch source and its functions."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sympy as sp

from rdgraph.language.factored_form import factored_form
from rdgraph.language.normal_form import H0, LAPLACIAN, Algebra, H, State
from rdgraph.language.reader import TIME_LETTER, start_of
from rdgraph.language.tree import Kind
from rdgraph.language.unfolding import lowerable
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.lowering.fused_slope import FusedTerms, fused_terms
from rdgraph.run.lowering.product_plan import schedule
from rdgraph.run.lowering.torch_source import GeneratedFunction, module_source
from rdgraph.systems.system import System

#: The functions of a generated module by name.
Code = Mapping[str, Callable[..., Any]]

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Lowered:
    """The stages of one lowering: normal forms by state, their parts free of states, functions, source, callables.

    `fused` are the terms of a single field that generated kernels can compute.
    """

    forms: dict[str, sp.Expr]
    free: dict[str, sp.Expr]
    field: GeneratedFunction
    forcing: GeneratedFunction
    noise: GeneratedFunction | None
    names: tuple[str, ...]
    source: str
    code: Code
    fused: FusedTerms | None = None

    @property
    def has_forcing(self) -> bool:
        """Whether some term is free of the states."""
        return any(form != 0 for form in self.free.values())


def coefficient_symbol(name: str) -> sp.Symbol:
    """The symbol of a coefficient in lowered expressions: real, of any sign."""
    return sp.Symbol(name, real=True)


def lowering_algebra(system: System, keeps_laplacian: bool = False) -> Algebra:
    """The rules of a system's normal form for numbers of any sign; L is not expanded where it is D - A."""
    symbols: dict[str, sp.Symbol] = {name: coefficient_symbol(name) for name in system.letters}
    states = [*system.fields, *map(start_of, system.fields)]
    symbols |= {name: State(name) for name in states} | {"H": H, "H0": H0}
    kinds = {**system.letters, **dict.fromkeys(states, Kind.FIELD)}
    return Algebra(symbols, kinds, {} if keeps_laplacian else LAPLACIAN)


@lru_cache(maxsize=256)
def lowered(system: System, keeps_laplacian: bool, normalisation: str) -> Lowered:
    """The stages of a system; they depend only on the equations and the meaning of L."""
    kinds = dict(system.letters)
    forms = lowered_forms(system, system.flow, keeps_laplacian)
    states = {"H": H} if len(forms) == 1 else {state: State(state) for state in forms}
    free = {i: sp.Add(*(t for t in sp.Add.make_args(f) if not t.has(*states.values()))) for i, f in forms.items()}
    field, forcing = schedule("field", forms, kinds), schedule("forcing", free, kinds)
    noise = None
    if system.is_noisy:
        noise = schedule("noise", lowered_forms(system, system.noise, keeps_laplacian), kinds)
    names = coefficient_letters(system)
    shapes = (
        "H (..., nodes, channels)" if len(forms) == 1 else f"state (..., nodes, {len(forms)}*d), {', '.join(forms)}"
    )
    note = f"Operator: {normalisation}, L = {'D' if keeps_laplacian else 'I'} - A. Shapes: {shapes}."
    functions = [field, *([forcing] if any(free.values()) else []), *([] if noise is None else [noise])]
    source = module_source(system.text, note, list(names), functions, is_packed=len(forms) > 1)
    fused = fused_terms(forms["H"], field, kinds) if len(forms) == 1 else None
    return Lowered(forms, free, field, forcing, noise, names, source, compiled(source), fused)


def coefficient_letters(system: System) -> tuple[str, ...]:
    """The arguments of the generated coefficients: the coefficients that need a value, and the time where it occurs."""
    return (*valued_letters(system), *(() if system.is_autonomous else (TIME_LETTER,)))


def lowered_forms(system: System, trees: Mapping[str, sp.Basic], keeps_laplacian: bool) -> dict[str, sp.Expr]:
    """The factored forms of trees by state, zero for a state without one; a single field is called H."""
    algebra = lowering_algebra(system, keeps_laplacian)
    forms = {state: factored_form(lowerable(trees.get(state, sp.S.Zero)), algebra) for state in system.fields}
    if len(forms) > 1:
        return forms
    ((name, form),) = forms.items()
    return {"H": form.xreplace({State(name): H, State(start_of(name)): H0})}


def compiled(source: str) -> Code:
    """The functions of a generated module; a traceback shows its lines."""
    filename = f"<rdgraph field {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {}  # without a name: torch.compile would look for a module of that name
    exec(compile(source, filename, "exec"), namespace)
    return namespace

"""Weighted sums over the nodes: what w^T makes of operators, and the laws that the normalisations obey.

w^T A = w^T takes the outermost A away, w^T L = 0 a term in L = D - A. On undirected graphs A is its own adjoint for the
weights d of the row normalisation, and for the weights 1 of D - A and of a symmetric A: the sums of u*(A@v) and of
v*(A@u) are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from rdgraph.algebra.normal_form import Act, Mix
from rdgraph.normalisations.registry import records
from rdgraph.syntax.tree import Kind
from rdgraph.systems.system import System

UNDIRECTED = "the graph is undirected"


@dataclass(frozen=True)
class SumLaw:
    """Weights of a normalisation: `vanishing` says which outermost letter they take away, A or L, empty for none."""

    normalisation: str
    weights: str
    assumes: str
    vanishing: str
    is_adjoint: bool

    def contracted(self, expression: sp.Expr, system: System) -> sp.Expr:
        """The sum over the nodes of a normal form, in one form for sums that are equal.

        >>> from rdgraph.systems.parser import parse
        >>> system = parse("u' = A@u - v*(A@u); v' = 0*v")
        >>> sum_laws()[1].contracted(system.normals["u"], system)
        -u*A@v + u
        """
        total = sp.S.Zero
        for term in sp.Add.make_args(sp.expand(expression)):
            total += self._term(term, system)
        return sp.expand(total)

    def _term(self, term: sp.Expr, system: System) -> sp.Expr:
        linear = [f for f in sp.Mul.make_args(term) if isinstance(f, Act | Mix)]
        others = sp.Mul(*(f for f in sp.Mul.make_args(term) if not isinstance(f, Act | Mix)))
        if len(linear) != 1:
            return term
        atom = linear[0]
        if not _varies(others, system):
            return others * self._alone(atom, system)
        return self._turned(others, atom, system) if isinstance(atom, Act) and self.is_adjoint else term

    def _alone(self, atom: Act | Mix, system: System) -> sp.Expr:
        if isinstance(atom, Mix):
            inner = self.contracted(atom.inner, system)
            return sp.Add(*(Mix(atom.word, part) for part in sp.Add.make_args(inner)))
        if self.vanishing == "L":
            return sp.S.Zero if atom.word[0].name == "L" else atom
        return atom.inner if self.vanishing == "A" and all(w.name == "A" for w in atom.word) else atom

    def _turned(self, others: sp.Expr, atom: Act, system: System) -> sp.Expr:
        """g*(word@h) or h*(reversed word@g), whichever comes first; only words of A and L are their own adjoints."""
        if any(w.name not in ("A", "L") for w in atom.word) or atom.inner.has(Act, Mix):
            return others * atom
        moving = [f for f in sp.Mul.make_args(others) if _varies(f, system)]
        fixed, field = sp.Mul(*(f for f in sp.Mul.make_args(others) if f not in moving)), sp.Mul(*moving)
        if str(field) <= str(atom.inner):
            return others * atom
        return fixed * atom.inner * Act(reversed(atom.word), field)

    def is_complete(self, expression: sp.Expr) -> bool:
        """Whether sums with different forms are known to be different: no product of two operators, no nested ones."""
        if not self.is_adjoint:
            return True
        if any(atom.inner.has(Act) for atom in expression.atoms(Act)) or expression.has(Mix):
            return False
        terms = sp.Add.make_args(sp.expand(expression))
        return all(sum(f.has(Act) for f in sp.Mul.make_args(t)) <= 1 and not _is_bent(t) for t in terms)


def _is_bent(term: sp.Expr) -> bool:
    """Whether an operator stands inside a power or a function."""
    return any(f.has(Act) and not isinstance(f, Act) for f in sp.Mul.make_args(term))


def sum_laws() -> tuple[SumLaw, ...]:
    """The laws of all normalisations that have one."""
    known = [(name, *record.conserved) for name, record in records.items() if record.conserved is not None]
    laws = [SumLaw(name, weights, assumes, "A", weights == "d") for name, weights, assumes in known]
    laws.append(SumLaw("none", "1", UNDIRECTED, "L", is_adjoint=True))
    laws.append(SumLaw("symmetric", "1", "", "", is_adjoint=True))
    return tuple(laws)


def _varies(expression: sp.Expr, system: System) -> bool:
    """Whether a factor varies from node to node."""
    kinds = system.algebra.kinds
    return any(kinds.get(x.name, Kind.FIELD) in (Kind.FIELD, Kind.NODE) for x in expression.free_symbols)

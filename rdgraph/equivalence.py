"""`equivalent`: are two systems the same flow? Proved, proved under conditions on the coefficients, or refuted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.derive import Hypotheses
from rdgraph.errors import NotApplicable
from rdgraph.function_identities import is_zero
from rdgraph.language import STRUCTURAL
from rdgraph.nodes import Kind
from rdgraph.normal import H0, Act, Algebra, H, Mix
from rdgraph.parse import parse
from rdgraph.symbols import public
from rdgraph.system import System
from rdgraph.witness import Witness, find_witness

PROVED, CONDITIONAL, REFUTED, UNDECIDED = "proved", "holds if", "refuted", "undecided"


@dataclass(frozen=True)
class Equivalence:
    """The verdict; `conditions` lists alternative sets of equations under which the systems are equal."""

    status: str
    conditions: tuple[tuple[str, ...], ...] = ()
    witness: Witness | None = None
    note: str = ""

    def __bool__(self) -> bool:
        return self.status == PROVED

    def __str__(self) -> str:
        if self.status == CONDITIONAL:
            return "equal if " + " or ".join(", ".join(c) for c in self.conditions)
        return self.status + (f"; {self.note}" if self.note else "") + (f" ({self.witness})" if self.witness else "")


def equivalent(
    first: System | str, second: System | str, given: Iterable[str] = (), *, rescale_time: bool = False
) -> Equivalence:
    """Compare two right-hand sides for every graph, state and admissible coefficient.

    `given` holds equations that may be used: coefficients ("beta = 0"), matrices ("W = 0"), operator hypotheses
    ("A@A = A"). Coefficients of the same name are the same coefficient. With `rescale_time` the systems may differ by a
    positive factor, that is by the speed at which the same path is run through.

    >>> str(equivalent("-alpha*L@H + beta*L@H", "-alpha*L@H", given=["beta = 0"]))
    'proved'
    >>> str(equivalent("ST", "CGNN"))
    'equal if W = 0, alpha = 1, beta = 1'
    """
    s, t = parse(first), parse(second)
    rules = _rules(s, t, tuple(given))
    algebra = _algebra(s, t, rules)
    left, right = algebra.normal(s.expression), algebra.normal(t.expression)
    factor = sp.Symbol("time_factor", positive=True) if rescale_time else sp.S.One
    difference = sp.expand(left - factor * right)
    if is_zero(difference):
        return Equivalence(PROVED)
    found = _conditions(difference, algebra, factor)
    admissible = [c for c in found if not c.excluded]
    if admissible:
        return Equivalence(CONDITIONAL, tuple(c.texts for c in admissible))
    note = "; ".join(f"only at {', '.join(c.texts)}, which signs or kinds exclude" for c in found)
    signs = dict(s.assumptions.signs) | dict(t.assumptions.signs)
    witness = find_witness(
        s.expression, t.expression, definitions=rules.definitions, relations=rules.relations, signs=signs
    )
    return Equivalence(REFUTED if witness else UNDECIDED, witness=witness, note=note)


def _rules(s: System, t: System, given: tuple[str, ...]) -> Hypotheses:
    letters = {n: k for x in (s, t) for n, k in x.letters.items() if n not in STRUCTURAL}
    clash = [n for n in s.letters if n in t.letters and s.letters[n] is not t.letters[n]]
    if clash:
        kinds = f"{s.letters[clash[0]]} and {t.letters[clash[0]]}"
        raise NotApplicable(f"expected {clash[0]} to be of one kind in both systems, got {kinds}")
    texts = given if any(g.partition("=")[0].strip() == "L" for g in given) else ("L = I - A", *given)
    return Hypotheses(texts, tuple(sorted((n, str(k)) for n, k in letters.items())))


def _algebra(s: System, t: System, rules: Hypotheses) -> Algebra:
    kinds = dict(rules.vocabulary.kinds)
    symbols = {n: sp.Symbol(n, real=True) for n in kinds}
    symbols |= {n: x for system in (t, s) for n, x in system.algebra.symbols.items()} | {"H": H, "H0": H0}
    return Algebra(symbols, kinds, rules.definitions, rules.relations)


@dataclass(frozen=True)
class _Solution:
    texts: tuple[str, ...]
    excluded: bool


def _conditions(difference: sp.Expr, algebra: Algebra, factor: sp.Expr) -> list[_Solution]:
    """Values of the coefficients that make every independent term vanish."""
    scalars = [x for n, x in algebra.symbols.items() if algebra.kinds.get(n) in (Kind.SCALAR, Kind.CHANNEL, Kind.NODE)]
    matrices = sorted({w.name for mixed in difference.atoms(Mix) for w in mixed.word})
    without = difference.xreplace(dict.fromkeys(difference.atoms(Mix), sp.S.Zero))
    table: dict[sp.Expr, sp.Expr] = {}
    for term in sp.Add.make_args(sp.expand(without)):
        inside = [f for f in sp.Mul.make_args(term) if f.has(Act, Mix) or not f.free_symbols <= {*scalars, factor}]
        core = sp.Mul(*inside)
        table[core] = table.get(core, sp.S.Zero) + term / core
    plain = {x: sp.Symbol(x.name, real=True) for x in [*scalars, factor] if isinstance(x, sp.Symbol)}
    equations = [sp.expand(v).xreplace(plain) for v in table.values() if sp.expand(v) != 0]
    unknowns = sorted(
        {x for e in equations for x in e.free_symbols}, key=lambda x: (x.name in ("time_factor", "M"), x.name)
    )
    solutions = sp.solve(equations, unknowns, dict=True) if equations else [{}]
    back = {v: k for k, v in plain.items()}
    return [_describe(solution, matrices, back, algebra.kinds) for solution in solutions]


def _describe(
    solution: dict[sp.Symbol, sp.Expr],
    matrices: list[str],
    back: dict[sp.Symbol, sp.Symbol],
    kinds: Mapping[str, Kind],
) -> _Solution:
    """A solution in words; excluded where a sign is wrong or one number would have to vary from node to node."""
    texts = [f"{name} = 0" for name in matrices]
    excluded = False
    for symbol, value in sorted(solution.items(), key=lambda pair: pair[0].name):
        own = back.get(symbol, symbol)
        signed = value.xreplace(back)
        wrong = (own.is_positive and signed.is_nonpositive) or (own.is_negative and signed.is_nonnegative)
        needed = {kinds.get(x.name, Kind.SCALAR) for x in value.free_symbols} - {Kind.SCALAR}
        varies = not needed <= {kinds.get(symbol.name, Kind.SCALAR)}
        excluded = excluded or bool(wrong) or varies
        texts.append(f"{symbol.name} = {public(value)}")
    return _Solution(tuple(texts), excluded)

"""Comparisons of two right-hand sides, and `Equivalence`, the verdict: proved, under conditions, or refuted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import sympy as sp

from rdgraph.canonical.function_identities import canonical, freed, is_zero
from rdgraph.decisions.judge import possible
from rdgraph.errors import InvalidArgument
from rdgraph.identities import definedness
from rdgraph.identities.coincidence import Alternative, Coincidence, coincidence
from rdgraph.identities.counterexample import Hint, Witness, find_witness
from rdgraph.identities.exact_values import not_parallel
from rdgraph.identities.hypotheses import Hypotheses
from rdgraph.syntax.answer_symbols import public
from rdgraph.syntax.assumptions import Assumptions
from rdgraph.syntax.reader import STRUCTURAL
from rdgraph.syntax.tree import Kind

PROVED, RESTRICTED, CONDITIONAL = "proved", "proved where defined", "holds if"
REFUTED, UNDECIDED = "refuted", "undecided"

LAPLACIAN = "L = I - A"


@dataclass(frozen=True)
class Equivalence:
    """The verdict; true only for "proved": both sides are defined on the same set and equal there.

    `domain` says where the sides are defined, if not everywhere. Sides that are equal wherever both are defined, but
    not defined on the same set, are "proved where defined", which is not true. `conditions` lists alternative sets of
    equations and inequalities under which the systems are equal; `is_complete` tells whether there are no others, and
    `witness` shows that they are needed. `time_factor` is the speed of the first system in units of the second, where
    `rescale_time` asked for one. `fields` pairs the fields of the first system with those of the second, where there
    are several.
    """

    status: str
    conditions: tuple[tuple[str, ...], ...] = ()
    witness: Witness | None = None
    note: str = ""
    domain: tuple[str, ...] = ()
    is_complete: bool = True
    time_factor: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return self.status == PROVED

    def __str__(self) -> str:
        if self.status == CONDITIONAL:
            others = "" if self.is_complete else "; there may be other conditions"
            return "equal if " + " or ".join(", ".join(c) for c in self.conditions) + self._speed + others
        if self.status == RESTRICTED:
            return f"proved where {', '.join(self.domain)}{self._speed}; only one side is defined elsewhere"
        where = f" where {', '.join(self.domain)}" if self.domain else ""
        note = f"; {self.note}" if self.note else ""
        return self.status + where + self._speed + note + (f" ({self.witness})" if self.witness else "")

    @property
    def _speed(self) -> str:
        renamed = any(one != other for one, other in self.fields)
        pairs = " with " + ", ".join(f"{one} = {other}" for one, other in self.fields) if renamed else ""
        return pairs + (f" with time_factor = {self.time_factor}" if self.time_factor else "")


class Comparison:
    """Two right-hand sides under common assumptions and hypotheses."""

    def __init__(self, first: sp.Basic, second: sp.Basic, rules: Hypotheses) -> None:
        self.first, self.second, self.rules = first, second, rules
        self.left, self.right = rules.algebra.normal(first), rules.algebra.normal(second)

    # ------------------------------------------------------------------ as they stand
    def answer(self) -> Equivalence:
        difference = sp.expand(self.left - self.right)
        if self._is_zero(difference):
            return self._proved()
        found = coincidence(difference, self.rules)
        if any(not a.texts for a in found.admissible):
            return self._proved()
        witness = find_witness(self.first, self.second, self.rules, self._hints(difference))
        if found.admissible:
            return self._conditional(found, witness)
        if witness is None:
            return Equivalence(UNDECIDED, note=_excluded(found), is_complete=found.is_complete)
        return Equivalence(REFUTED, witness=witness, note=_excluded(found), is_complete=found.is_complete)

    def _is_zero(self, difference: sp.Expr) -> bool:
        return is_zero(difference, self.rules.algebra, self.rules.domain)

    def _proved(self, time_factor: str = "") -> Equivalence:
        """Equal where both are defined; plainly proved only where that is the same set."""
        algebra, domain = self.rules.algebra, self.rules.domain
        left, right = (definedness.conditions(x, algebra, domain) for x in (self.first, self.second))
        status = PROVED if definedness.agree(left, right, domain) else RESTRICTED
        chosen = left if status == PROVED else tuple(dict.fromkeys((*left, *right)))
        return Equivalence(status, domain=tuple(map(definedness.in_words, chosen)), time_factor=time_factor)

    def _conditional(self, found: Coincidence, witness: Witness | None, time_factor: str = "") -> Equivalence:
        texts = tuple(a.texts for a in found.admissible)
        return Equivalence(CONDITIONAL, texts, witness=witness, is_complete=found.is_complete, time_factor=time_factor)

    def _hints(self, difference: sp.Expr) -> list[Hint]:
        """A point at which the judge sees a difference, operators and matrices taken as free."""
        form = canonical(difference, self.rules.algebra, self.rules.domain)
        ruling = possible(*freed((sp.Ne(form.numerator, 0, evaluate=False), *self.rules.domain.conditions)))
        point = ruling.point or {}
        return [{x.name: v for x, v in point.items() if v.is_Rational and not isinstance(x, sp.Dummy)}] if point else []

    # ------------------------------------------------------------------ at any speed
    def at_any_speed(self) -> Equivalence:
        """left = factor * right for some positive factor that may depend on scalar coefficients."""
        if self._is_zero(sp.expand(self.left - self.right)):
            return self._proved("1")
        conditional = None
        for factor in self._factors():
            difference = sp.expand(self.left - factor * self.right)
            if self.rules.domain.proves(_is_positive(factor)) and self._is_zero(difference):
                return self._proved(str(public(factor)))
            if conditional is None:
                conditional = self._conditional_at(factor, difference)
        if conditional is not None:
            return conditional
        plain = self.answer()
        if plain.status == CONDITIONAL:
            return replace(plain, time_factor="1", is_complete=False)
        return self._refuted_at_any_speed()

    def _factors(self) -> list[sp.Expr]:
        """Candidates: the ratio of the coefficients of one core, if it is one number."""
        letters = [
            x for n, x in self.rules.algebra.symbols.items() if self.rules.vocabulary.kinds.get(n) is Kind.SCALAR
        ]
        speed = sp.Dummy("speed", positive=True)
        form = canonical(self.left - speed * self.right, self.rules.algebra, self.rules.domain)
        found: set[sp.Expr] = set()
        for coefficient in form.collected([*letters, speed]).values():
            slope = coefficient.coeff(speed)
            if slope != 0:
                found.add(sp.cancel(-(coefficient - slope * speed) / slope))
        usable = (f for f in found if f != 0 and f.free_symbols <= set(letters))
        return sorted(usable, key=lambda f: (f.count_ops(), str(f)))

    def _conditional_at(self, factor: sp.Expr, difference: sp.Expr) -> Equivalence | None:
        """Conditions under which the systems run through the same paths at this speed."""
        if self.rules.domain.where(_is_positive(factor)).is_empty():
            return None
        found = coincidence(difference, self.rules)
        kept = tuple(a for a in found.admissible if self._leaves_speed(a, factor))
        if not kept:
            return None
        return self._conditional(replace(found, admissible=kept, is_complete=False), None, str(public(factor)))

    def _leaves_speed(self, alternative: Alternative, factor: sp.Expr) -> bool:
        """Whether the factor is positive under the conditions."""
        return self.rules.domain.where(*alternative.conditions).proves(_is_positive(factor)) is True

    def _refuted_at_any_speed(self) -> Equivalence:
        """One state whose images are not positive multiples of each other refutes every factor at once."""
        witness = find_witness(
            self.first, self.second, self.rules, self._hints(sp.expand(self.left - self.right)), apart=not_parallel
        )
        return Equivalence(REFUTED if witness else UNDECIDED, witness=witness, is_complete=False)


def _is_positive(factor: sp.Expr) -> sp.Basic:
    """factor > 0 as a condition between polynomials, which is false where a denominator vanishes."""
    top, bottom = sp.fraction(sp.together(factor))
    return sp.Gt(sp.expand(top * bottom), 0, evaluate=False)


def _excluded(found: Coincidence) -> str:
    """The conditions that would be needed, where they are all there are."""
    if not found.is_complete:
        return ""
    return "; ".join(f"only at {', '.join(a.texts)}, which signs or kinds exclude" for a in found.excluded)


def make_rules(
    kinds: Sequence[Mapping[str, Kind]],
    assumptions: Sequence[Assumptions],
    given: tuple[str, ...],
    operators: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> Hypotheses:
    """The hypotheses of a comparison: what is declared and assumed of letters on either side, and L = I - A."""
    one, other = kinds
    clash = [n for n in one if n in other and one[n] is not other[n]]
    if clash:
        both = f"{one[clash[0]]} and {other[clash[0]]}"
        raise InvalidArgument(f"expected {clash[0]} to be of one kind in both systems, got {both}")
    letters = {n: k for n, k in {**one, **other}.items() if n not in STRUCTURAL}
    declared = tuple(sorted((n, str(k)) for n, k in letters.items()))
    rules = Hypotheses(given, declared, assumptions[0].joined(assumptions[1]), operators)
    return rules if "L" in rules.definitions else replace(rules, texts=(LAPLACIAN, *given))

"""`Behaviours`: merges equations that are equivalent, so that each behaviour is trained once.

Two equations with a coefficient for each term are equivalent if their coefficients reach the same right-hand sides on
every graph; then only one of them is trained. L is I - A, and D - A if A is not normalised. Every merge records its
rule, and the coefficients of one equation in terms of the other's. Equations not proved to be equivalent stay separate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import sympy as sp

from gread.discovery.term_grammar import MINUS, Line, Term
from gread.settings.gread_settings import GreadSettings
from rdgraph.language.normal_form import Algebra
from rdgraph.reals.domain import Domain
from rdgraph.systems.canonical.function_identities import canonical
from rdgraph.systems.parser import parse
from rdgraph.vocabulary.normalisations import find_normalisation
from rdgraph.wording import signed_sum

# ---------------------------------------------------------------------- term vectors
# Terms as exact vectors over the parts of their normal forms, and the linear algebra of the reachable right-hand sides.
#
# A term is a sum of rational multiples of cores: power products of states, words of operators and functions, from the
# normal form (plain) or the canonical form (with identities of functions). Equal vectors are equal terms on every
# graph; an equation with one coefficient for each term reaches a set of such sums.

#: Multiples of cores by the numbers of these, without zeros.
Vector: TypeAlias = dict[int, Fraction]
#: The same as a hashable value.
Frozen: TypeAlias = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Reach:
    """The right-hand sides that the coefficients of an equation reach: span(basis) + the open zonotope of segments.

    Free coefficients span a linear space, given by its reduced echelon form. A coefficient in (0, 1) adds the segment
    from 0 to its term; modulo the space, segments on one line add up, and `centre` (twice the midpoint) determines
    their side. Two equations reach the same right-hand sides if and only if these agree, up to unknown relations
    between cores. Unbounded positive coefficients then reach the same, too.
    """

    kind: str
    basis: tuple[Frozen, ...]
    segments: tuple[tuple[Frozen, Fraction], ...]
    centre: Frozen


@dataclass(eq=False)
class TermVectors:
    """The vectors of terms, each computed once; with or without identities of functions.

    L is I - A. With `has_degrees` it is D - A, and A and L are treated as independent operators.

    >>> from gread.discovery.term_grammar import find_terms
    >>> vectors, grammar = TermVectors(), find_terms("small")
    >>> lines = {line.formula: line for line in grammar.lines(2)}
    >>> vectors.reach(lines["alpha*H + beta*A@H"]) == vectors.reach(lines["alpha*H + beta*L@H"])
    True
    >>> vectors.reach(lines["alpha*H"]) == vectors.reach(lines["alpha*A@H"])
    False
    """

    with_identities: bool = True
    has_degrees: bool = False
    _cores: dict[sp.Expr, int] = field(default_factory=dict)
    _known: dict[str, Vector] = field(default_factory=dict)

    def vector(self, term: Term) -> Vector:
        """The vector of a term, its sign included."""
        if term.body not in self._known:
            self._known[term.body] = self._vector_of(term.body)
        vector = self._known[term.body]
        return {core: -c for core, c in vector.items()} if term.sign == MINUS else vector

    def _vector_of(self, body: str) -> Vector:
        system = parse(body)
        algebra = replace(system.algebra, definitions={}) if self.has_degrees else system.algebra
        vector: Vector = {}
        for part, factor in _rational_parts(algebra.normal(system.expression)):
            parts = _canonical_parts(part, algebra, system.domain) if self.with_identities else [(part, sp.S.One)]
            for core, c in parts:
                number, total = self._cores.setdefault(core, len(self._cores)), factor * c
                vector = added(vector, {number: Fraction(total.p, total.q)}, Fraction(1))
        return vector

    def reach(self, line: Line) -> Reach:
        """The set of right-hand sides that the coefficients of an equation reach."""
        vectors = [(term.is_free, self.vector(term)) for term in line.terms]
        basis = echelon([v for is_free, v in vectors if is_free])
        bounded = [rest for is_free, v in vectors if not is_free and (rest := reduced(v, basis))]
        segments: dict[Frozen, Fraction] = {}
        centre: Vector = {}
        for vector in bounded:
            lead = vector[min(vector)]
            line_of = frozen(scaled(vector, 1 / lead))
            segments[line_of] = segments.get(line_of, Fraction(0)) + abs(lead)
            centre = added(centre, vector, Fraction(1))
        return Reach(line.kind, tuple(map(frozen, basis)), tuple(sorted(segments.items())), frozen(centre))

    def coefficient_map(self, line: Line, other: Line) -> tuple[tuple[Fraction, ...], ...] | None:
        """The matrix from the coefficients of `line` to those of `other` with the same right-hand side.

        None if the terms of `other` do not determine its coefficients, or do not reach those of `line`.
        """
        columns = [self.vector(term) for term in other.terms]
        marks = [-(k + 1) for k in range(len(columns))]  # a column for each coefficient, behind all cores
        shift = 1 + max((core for c in columns for core in c), default=0)
        rows = echelon([{**c, shift - 1 - m: Fraction(1)} for c, m in zip(columns, marks, strict=True)])
        if sum(min(row) < shift for row in rows) < len(columns):
            return None
        columns_of = []
        for term in line.terms:
            rest = reduced(self.vector(term), rows)
            if any(core < shift for core in rest):
                return None
            columns_of.append(tuple(-rest.get(shift - 1 - m, Fraction(0)) for m in marks))
        return tuple(zip(*columns_of, strict=True))


def _rational_parts(expression: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Rational]]:
    """The terms of a sum as cores with rational factors."""
    for term in sp.Add.make_args(sp.expand(expression, deep=False)):
        factor, core = term.as_coeff_Mul(rational=True)
        if factor != 0:
            yield core, factor


def _canonical_parts(part: sp.Expr, algebra: Algebra, domain: Domain) -> Iterator[tuple[sp.Expr, sp.Rational]]:
    """The canonical parts of one product of a normal form, by identities of functions, term by term."""
    form = canonical(part, algebra, domain)
    for core, c in _rational_parts(form.numerator):
        for numerator, denominator in _partial_fractions(core, form.denominator):
            content, below = denominator.as_content_primitive()
            yield from ((above / below, c * d / content) for above, d in _rational_parts(numerator))


def _partial_fractions(core: sp.Expr, denominator: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """The partial fractions of a product over a polynomial in one expression, as pairs; other fractions unchanged.

    This gives H*sigmoid(H) and H*tanh(H/2) the common parts H and H/(exp(H) + 1). Factors of the whole polynomial, as H
    in H*exp(H) + H, are moved to the product.

    >>> x, y = sp.symbols("x y")
    >>> [sp.Mul(above, 1 / below, evaluate=True) for above, below in _partial_fractions(x * y, x + 1)]
    [y, -y/(x + 1)]
    """
    core, denominator = _divided(core, denominator)
    generators = [] if denominator.is_number else list(sp.Poly(denominator).gens)
    if len(generators) != 1:
        yield core, denominator
        return
    variable, x = generators[0], sp.Dummy()
    base, unit = variable.as_base_exp()
    known = [factor.as_base_exp() for factor in sp.Mul.make_args(core)]
    power = sum(ratio for part_base, times in known if part_base == base and (ratio := times / unit).is_Integer)
    rest = core / variable**power
    if rest.has(variable) or power < 0:
        yield core, denominator
        return
    whole = sp.apart(x**power / sp.Poly(denominator, variable).as_expr(x), x)
    for piece in sp.Add.make_args(whole):
        above, below = sp.fraction(piece)
        yield sp.expand(rest * above.xreplace({x: variable})), below.xreplace({x: variable})


def _divided(core: sp.Expr, denominator: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A fraction with the monomial factors of its denominator moved to the numerator."""
    if denominator.is_number:
        return core, denominator
    powers, rest = sp.Poly(denominator).terms_gcd()
    factors = [g**k for g, k in zip(rest.gens, powers, strict=True) if rest.degree(g) == 0]
    if len(factors) == len(rest.gens):
        return core, denominator
    monomial = sp.Mul(*factors)
    return core / monomial, sp.expand(denominator / monomial)


# ---------------------------------------------------------------------- linear algebra
def frozen(vector: Vector) -> Frozen:
    return tuple(sorted(vector.items()))


def scaled(vector: Vector, factor: Fraction) -> Vector:
    return {core: factor * c for core, c in vector.items()}


def added(vector: Vector, other: Vector, factor: Fraction) -> Vector:
    """The sparse vector vector + factor*other, without zeros.

    >>> added({0: Fraction(1)}, {0: Fraction(1), 1: Fraction(2)}, Fraction(-1))
    {1: Fraction(-2, 1)}
    """
    total = dict(vector)
    for core, c in other.items():
        entry = total.get(core, Fraction(0)) + factor * c
        if entry:
            total[core] = entry
        else:
            total.pop(core, None)
    return total


def reduced(vector: Vector, basis: Sequence[Vector]) -> Vector:
    """The vector modulo the rows of an echelon form: zero at their leading entries."""
    for row in basis:
        if lead := vector.get(min(row)):
            vector = added(vector, row, -lead)
    return vector


def echelon(vectors: Iterable[Vector]) -> list[Vector]:
    """The reduced echelon form of a span, the same for all vectors that span it.

    >>> rows = echelon([{0: Fraction(2), 1: Fraction(2)}, {1: Fraction(3)}])
    >>> [{k: int(c) for k, c in row.items()} for row in rows]
    [{0: 1}, {1: 1}]
    """
    rows: list[Vector] = []
    for vector in vectors:
        rest = reduced(vector, rows)
        if rest:
            lead = min(rest)
            rest = scaled(rest, 1 / rest[lead])
            rows = [added(row, rest, -row[lead]) if lead in row else row for row in rows]
            rows = sorted([*rows, rest], key=min)
    return rows


# ---------------------------------------------------------------------- behaviours
#: The rules by which two equations are equivalent, the simplest first: see `RULE_WORDS`.
RULES = REPEATED, SPELLED, RENAMED, ABSORBED, REPARAMETRISED, IDENTITY = (
    "repeated", "normal form", "renaming", "absorbed", "reparametrisation", "identity",
)  # fmt: skip
RULE_WORDS = {
    REPEATED: "the same text was drawn before",
    SPELLED: "the same normal form, as L@A@H and A@L@H have",
    RENAMED: "the same normal form with the coefficients renamed",
    ABSORBED: "not all of its coefficients are identifiable: some of them are absorbed by the others, as in "
    "alpha*L@H + beta*H + gamma*A@H",
    REPARAMETRISED: "the same right-hand sides with other coefficients, as alpha*H + beta*A@H and alpha*H + beta*L@H",
    IDENTITY: "the same right-hand sides by an identity between functions, as 2*relu(H) = H + abs(H)",
}


@dataclass(frozen=True)
class Merge:
    """A merged equation, the one that represents it, the rule, and the coefficients of the latter."""

    line: Line
    into: Line
    rule: str
    coefficients: str


@dataclass(eq=False)
class Behaviours:
    """The equations seen so far, each behaviour once, in order.

    >>> from gread.discovery.term_grammar import find_terms
    >>> seen = Behaviours()
    >>> for line in find_terms("small").lines(2):
    ...     _ = seen.add(line)
    >>> len(seen.lines), dict(seen.counts())
    (40, {'reparametrisation': 4})
    >>> merge = next(iter(seen.merges.values()))
    >>> merge.line.formula, merge.into.formula, merge.coefficients
    ('alpha*H + beta*L@H', 'alpha*H + beta*A@H', 'alpha = alpha + beta, beta = -beta')
    """

    lines: dict[str, Line] = field(default_factory=dict)
    merges: dict[str, Merge] = field(default_factory=dict)
    _representatives: dict[Reach, Line] = field(default_factory=dict)
    _vectors: TermVectors = field(default_factory=TermVectors)
    _plain: TermVectors = field(default_factory=lambda: TermVectors(with_identities=False))
    _repeated: int = 0

    @classmethod
    def under(cls, settings: GreadSettings) -> Behaviours:
        """An empty record of behaviours, with the L of the network: I - A, or D - A for an unnormalised A.

        >>> from gread.discovery.term_grammar import find_terms
        >>> seen = Behaviours.under(GreadSettings(adjacency="original", normalisation="none"))
        >>> [seen.add(line) for line in find_terms("small").lines(2) if line.formula.endswith("L@H")]
        [None, None, None]
        """
        has_degrees = settings.adjacency == "original" and find_normalisation(settings.normalisation).has_degrees
        plain = TermVectors(with_identities=False, has_degrees=has_degrees)
        return cls(_vectors=TermVectors(has_degrees=has_degrees), _plain=plain)

    def add(self, line: Line) -> Merge | None:
        """Add an equation; returns its merge if an equivalent one was seen, None if it is new."""
        if line.text in self.lines or line.text in self.merges:
            self._repeated += 1
            into = self.merges[line.text].into if line.text in self.merges else line
            return Merge(line, into, REPEATED, "")
        known = self._representatives.setdefault(self._vectors.reach(line), line)
        if known is line:
            self.lines[line.text] = line
            return None
        merge = Merge(line, known, self._rule(line, known), self._map_text(line, known))
        self.merges[line.text] = merge
        return merge

    def representative(self, line: Line) -> Line:
        """The equation that represents an added one."""
        return self.merges[line.text].into if line.text in self.merges else line

    def counts(self) -> Counter[str]:
        """The numbers of merged equations by rule."""
        counts = Counter(merge.rule for merge in self.merges.values())
        if self._repeated:
            counts[REPEATED] = self._repeated
        return counts

    def _rule(self, line: Line, other: Line) -> str:
        """The simplest rule by which two equations are equivalent."""
        terms, others = ([(t.is_free, frozen(self._plain.vector(t))) for t in each.terms] for each in (line, other))
        if terms == others:
            return SPELLED
        if Counter(terms) == Counter(others):
            return RENAMED
        if self._plain.reach(line) != self._plain.reach(other):
            return IDENTITY
        return ABSORBED if line.size > other.size else REPARAMETRISED

    def _map_text(self, line: Line, other: Line) -> str:
        """The coefficients of the representative, in those of the merged equation."""
        matrix = self._vectors.coefficient_map(line, other)
        if matrix is None:
            return ""
        return ", ".join(
            f"{name} = {sum_text(row, line.coefficients)}" for name, row in zip(other.coefficients, matrix, strict=True)
        )


def sum_text(factors: tuple[Fraction, ...], names: tuple[str, ...]) -> str:
    """The sum of factors times coefficient names as text.

    >>> sum_text((Fraction(1), Fraction(-1, 2)), ("alpha", "beta"))
    'alpha - beta/2'
    """
    terms = []
    for factor, name in zip(factors, names, strict=True):
        if factor:
            head = {1: name, -1: f"-{name}"}.get(factor.numerator, f"{factor.numerator}*{name}")
            terms.append(head if factor.denominator == 1 else f"{head}/{factor.denominator}")
    return signed_sum(terms)

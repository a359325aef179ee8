"""`Behaviours`: each equation once. An equation that only says again what another one does is merged into it.

Two equations with a coefficient for each term behave alike where their coefficients reach the same right-hand sides,
on every graph; then one of them is trained. L is I - A there, and where A is not normalised D - A. Which rule said so
is kept with every merge, with the coefficients of the one in those of the other. What is not proved to be the same is
kept apart.
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
# Terms as exact vectors over the parts of their normal forms, and the linear algebra of what coefficients reach.
#
# A term is a sum of rational multiples of cores: power products of states, words of operators and functions, which the
# core's normal form (plain) or its canonical form (with identities of functions) gives. Equal vectors are equal terms
# on every graph; an equation with one coefficient for each term reaches a set of such sums.

#: Multiples of cores by the numbers of these; zeros are left out.
Vector: TypeAlias = dict[int, Fraction]
#: The same as a value that can be compared.
Frozen: TypeAlias = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Reach:
    """What the coefficients of an equation reach: span(basis) + the open zonotope of the generators.

    Free coefficients span a linear space, given by its reduced echelon form. A coefficient in (0, 1) adds the segment
    from 0 to its term; modulo the space, segments on one line add up, and `centre` (twice the middle) says on which
    side they lie. Two equations reach the same right-hand sides if and only if these agree, up to relations between
    cores that nobody knows of. Positive coefficients without an end then reach the same, too.
    """

    kind: str
    basis: tuple[Frozen, ...]
    segments: tuple[tuple[Frozen, Fraction], ...]
    centre: Frozen


@dataclass(eq=False)
class TermVectors:
    """The vectors of terms, each worked out once; with or without identities of functions.

    L is I - A. With `has_degrees` it is D - A, of which nothing is used: A and L are then letters of their own.

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
            self._known[term.body] = self._made(term.body)
        own = self._known[term.body]
        return {core: -c for core, c in own.items()} if term.sign == MINUS else own

    def _made(self, body: str) -> Vector:
        system = parse(body)
        algebra = replace(system.algebra, definitions={}) if self.has_degrees else system.algebra
        found: Vector = {}
        for part, factor in _rational_parts(algebra.normal(system.expression)):
            parts = _canonical_parts(part, algebra, system.domain) if self.with_identities else [(part, sp.S.One)]
            for core, c in parts:
                place, total = self._cores.setdefault(core, len(self._cores)), factor * c
                found = added(found, {place: Fraction(total.p, total.q)}, Fraction(1))
        return found

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
        """The matrix that takes coefficients of `line` to those of `other` that give the same right-hand side.

        None where the terms of `other` do not determine its coefficients, or do not reach those of `line`.
        """
        columns = [self.vector(term) for term in other.terms]
        marks = [-(k + 1) for k in range(len(columns))]  # a column for each coefficient, behind all cores
        shift = 1 + max((core for c in columns for core in c), default=0)
        rows = echelon([{**c, shift - 1 - m: Fraction(1)} for c, m in zip(columns, marks, strict=True)])
        if sum(min(row) < shift for row in rows) < len(columns):
            return None
        found = []
        for term in line.terms:
            rest = reduced(self.vector(term), rows)
            if any(core < shift for core in rest):
                return None
            found.append(tuple(-rest.get(shift - 1 - m, Fraction(0)) for m in marks))
        return tuple(zip(*found, strict=True))


def _rational_parts(expression: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Rational]]:
    """The terms of a sum as cores with rational factors."""
    for term in sp.Add.make_args(sp.expand(expression, deep=False)):
        factor, core = term.as_coeff_Mul(rational=True)
        if factor != 0:
            yield core, factor


def _canonical_parts(part: sp.Expr, algebra: Algebra, domain: Domain) -> Iterator[tuple[sp.Expr, sp.Rational]]:
    """One product of a normal form by identities of functions: term by term, so that sums of products go along."""
    form = canonical(part, algebra, domain)
    for core, c in _rational_parts(form.numerator):
        for numerator, denominator in _partial_fractions(core, form.denominator):
            content, below = denominator.as_content_primitive()
            yield from ((above / below, c * d / content) for above, d in _rational_parts(numerator))


def _partial_fractions(core: sp.Expr, denominator: sp.Expr) -> Iterator[tuple[sp.Expr, sp.Expr]]:
    """The partial fractions of a product over a polynomial in one thing, as pairs; other fractions as they are.

    So H*sigmoid(H) and H*tanh(H/2), which differ in the multiples of H and H/(exp(H) + 1), have these in common. What
    divides the whole polynomial, as H does H*exp(H) + H, goes to the product.

    >>> x, y = sp.symbols("x y")
    >>> [sp.Mul(above, 1 / below, evaluate=True) for above, below in _partial_fractions(x * y, x + 1)]
    [y, -y/(x + 1)]
    """
    core, denominator = _divided(core, denominator)
    generators = [] if denominator.is_number else list(sp.Poly(denominator).gens)
    if len(generators) != 1:
        yield core, denominator
        return
    thing, x = generators[0], sp.Dummy()
    base, unit = thing.as_base_exp()
    known = [factor.as_base_exp() for factor in sp.Mul.make_args(core)]
    power = sum(ratio for own, times in known if own == base and (ratio := times / unit).is_Integer)
    rest = core / thing**power
    if rest.has(thing) or power < 0:
        yield core, denominator
        return
    whole = sp.apart(x**power / sp.Poly(denominator, thing).as_expr(x), x)
    for piece in sp.Add.make_args(whole):
        above, below = sp.fraction(piece)
        yield sp.expand(rest * above.xreplace({x: thing})), below.xreplace({x: thing})


def _divided(core: sp.Expr, denominator: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A fraction whose product is divided by the things that are nothing but factors of the polynomial."""
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
    found = dict(vector)
    for core, c in other.items():
        total = found.get(core, Fraction(0)) + factor * c
        if total:
            found[core] = total
        else:
            found.pop(core, None)
    return found


def reduced(vector: Vector, basis: Sequence[Vector]) -> Vector:
    """The vector modulo the rows of an echelon form: zero at their leading places."""
    for row in basis:
        if lead := vector.get(min(row)):
            vector = added(vector, row, -lead)
    return vector


def echelon(vectors: Iterable[Vector]) -> list[Vector]:
    """The reduced echelon form of a span, which is one for all vectors that span it.

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
#: What may say that two equations behave alike, from the plainest: see `RULE_WORDS`.
RULES = REPEATED, SPELLED, RENAMED, ABSORBED, REPARAMETRISED, IDENTITY = (
    "repeated", "normal form", "renaming", "absorbed", "reparametrisation", "identity",
)  # fmt: skip
RULE_WORDS = {
    REPEATED: "the same text was drawn before",
    SPELLED: "the same normal form, as L@A@H and A@L@H have",
    RENAMED: "the same normal form with the coefficients renamed",
    ABSORBED: "it has more coefficients than can be told apart: some of them are absorbed by the others, as in "
    "alpha*L@H + beta*H + gamma*A@H",
    REPARAMETRISED: "the same right-hand sides with other coefficients, as alpha*H + beta*A@H and alpha*H + beta*L@H",
    IDENTITY: "the same right-hand sides by an identity between functions, as 2*relu(H) = H + abs(H)",
}


@dataclass(frozen=True)
class Merge:
    """An equation that was merged, the one that stands for it, the rule, and the coefficients of the latter."""

    line: Line
    into: Line
    rule: str
    coefficients: str


@dataclass(eq=False)
class Behaviours:
    """The equations that were seen, each behaviour once, in the order in which they came.

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
    _standing: dict[Reach, Line] = field(default_factory=dict)
    _vectors: TermVectors = field(default_factory=TermVectors)
    _plain: TermVectors = field(default_factory=lambda: TermVectors(with_identities=False))
    _repeated: int = 0

    @classmethod
    def under(cls, settings: GreadSettings) -> Behaviours:
        """An empty record of behaviours, with L as the network has it: I - A, or D - A for the graph's unchanged A.

        >>> from gread.discovery.term_grammar import find_terms
        >>> seen = Behaviours.under(GreadSettings(adjacency="original", normalisation="none"))
        >>> [seen.add(line) for line in find_terms("small").lines(2) if line.formula.endswith("L@H")]
        [None, None, None]
        """
        has_degrees = settings.adjacency == "original" and find_normalisation(settings.normalisation).has_degrees
        plain = TermVectors(with_identities=False, has_degrees=has_degrees)
        return cls(_vectors=TermVectors(has_degrees=has_degrees), _plain=plain)

    def add(self, line: Line) -> Merge | None:
        """Take up an equation; the merge where it behaves like one that was seen, None where it is new."""
        if line.text in self.lines or line.text in self.merges:
            self._repeated += 1
            into = self.merges[line.text].into if line.text in self.merges else line
            return Merge(line, into, REPEATED, "")
        standing = self._standing.setdefault(self._vectors.reach(line), line)
        if standing is line:
            self.lines[line.text] = line
            return None
        merge = Merge(line, standing, self._rule(line, standing), self._told_map(line, standing))
        self.merges[line.text] = merge
        return merge

    def standing_for(self, line: Line) -> Line:
        """The equation that stands for one that was added."""
        return self.merges[line.text].into if line.text in self.merges else line

    def counts(self) -> Counter[str]:
        """How many equations were merged by which rule."""
        found = Counter(merge.rule for merge in self.merges.values())
        if self._repeated:
            found[REPEATED] = self._repeated
        return found

    def _rule(self, line: Line, other: Line) -> str:
        """The plainest rule that says that two equations behave alike."""
        own, others = ([(t.is_free, frozen(self._plain.vector(t))) for t in each.terms] for each in (line, other))
        if own == others:
            return SPELLED
        if Counter(own) == Counter(others):
            return RENAMED
        if self._plain.reach(line) != self._plain.reach(other):
            return IDENTITY
        return ABSORBED if line.size > other.size else REPARAMETRISED

    def _told_map(self, line: Line, other: Line) -> str:
        """The coefficients of the equation that stands, in those of the one that was merged."""
        matrix = self._vectors.coefficient_map(line, other)
        if matrix is None:
            return ""
        return ", ".join(
            f"{name} = {told_sum(row, line.coefficients)}" for name, row in zip(other.coefficients, matrix, strict=True)
        )


def told_sum(factors: tuple[Fraction, ...], names: tuple[str, ...]) -> str:
    """Text of the sum of factors times coefficient names.

    >>> told_sum((Fraction(1), Fraction(-1, 2)), ("alpha", "beta"))
    'alpha - beta/2'
    """
    terms = []
    for factor, name in zip(factors, names, strict=True):
        if factor:
            head = {1: name, -1: f"-{name}"}.get(factor.numerator, f"{factor.numerator}*{name}")
            terms.append(head if factor.denominator == 1 else f"{head}/{factor.denominator}")
    return signed_sum(terms)

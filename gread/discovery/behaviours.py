"""`Behaviours`: each equation once. An equation that only says again what another one does is merged into it.

Two equations with a coefficient for each term behave alike where their coefficients reach the same right-hand sides,
on every graph; then one of them is trained. L is I - A there, and where A is not normalised D - A. Which rule said so
is kept with every merge, with the coefficients of the one in those of the other. What is not proved to be the same is
kept apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction

from gread.discovery.term_grammar import Line
from gread.discovery.term_vectors import Reach, TermVectors, frozen
from gread.settings.gread_settings import GreadSettings
from rdgraph.normalisations.registry import find_normalisation

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
        """Nothing seen yet, with L as the network has it: I - A, or D - A where A is the graph's as it is.

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
    """A sum of multiples of names.

    >>> told_sum((Fraction(1), Fraction(-1, 2)), ("alpha", "beta"))
    'alpha - beta/2'
    """
    text = ""
    for factor, name in zip(factors, names, strict=True):
        if factor:
            size = abs(factor)
            head = f"{size.numerator}*{name}" if size.numerator != 1 else name
            part = head if size.denominator == 1 else f"{head}/{size.denominator}"
            sign = "-" if factor < 0 else "+"
            text = f"{text} {sign} {part}" if text else (f"-{part}" if factor < 0 else part)
    return text or "0"

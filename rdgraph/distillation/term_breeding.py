"""How new terms come from old ones: drawn, crossed, changed, each with the constants in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rdgraph.distillation.prefix_terms import POWERS, Word, end_of, size_of
from rdgraph.distillation.term_forms import is_nested, is_trivial, plain_form

Array = np.ndarray
#: Terms larger than this are not bred further.
MOST_UNITS = 13


@dataclass(frozen=True, eq=False)
class Gene:
    """A term with its inner constants (sets, count)."""

    word: Word
    constants: Array

    @property
    def key(self) -> tuple[Word, bytes]:
        return self.word, self.constants.tobytes()

    def part(self, start: int, stop: int) -> Gene:
        """The expression between two places."""
        before = self.word[:start].count("c")
        inside = self.word[start:stop].count("c")
        return Gene(self.word[start:stop], self.constants[:, before : before + inside])

    def put(self, start: int, stop: int, other: Gene) -> Gene:
        """The term with another expression between two places."""
        before, after = self.word[:start].count("c"), self.word[:stop].count("c")
        parts = (self.constants[:, :before], other.constants, self.constants[:, after:])
        return Gene((*self.word[:start], *other.word, *self.word[stop:]), np.concatenate(parts, 1))


@dataclass(frozen=True)
class Breeder:
    """Draws terms in the given functions; the same seed draws the same."""

    functions: Sequence[str]
    sets: int
    rng: np.random.Generator
    #: Whether a function may be taken of a function.
    nested: bool = False

    def new_genome(self) -> tuple[Gene, ...]:
        """One to three drawn terms."""
        return tuple(self.new_gene() for _ in range(int(self.rng.integers(1, 4))))

    def new_gene(self, depth: int = 3) -> Gene:
        word = self._grown(depth)
        while not self.nested and is_nested(word):
            word = self._grown(depth)
        return _plain(Gene(word, np.repeat(self._drawn(word.count("c")), self.sets, 0)))

    def child(self, first: Sequence[Gene], second: Sequence[Gene]) -> tuple[Gene, ...]:
        """A changed copy of one sum, or a mixture of two; terms that occur twice once."""
        made = list(first)
        place = int(self.rng.integers(len(made)))
        other = second[int(self.rng.integers(len(second)))]
        match int(self.rng.choice(6, p=[0.16, 0.2, 0.26, 0.12, 0.12, 0.14])):
            case 0:
                made[place] = other
            case 1:
                made[place] = _plain(self._crossed(made[place], other))
            case 2:
                made[place] = _plain(self._changed(made[place]))
            case 3:
                made.append(other if self.rng.random() < 0.5 else self.new_gene(2))
            case 4:
                del made[place]
            case _:
                made[place] = _plain(self._shifted(made[place]))
        unique = {gene.key: gene for gene in made if "x" in gene.word or gene.word == ("1",)}
        return tuple(gene for gene in unique.values() if size_of(gene.word) <= MOST_UNITS and self._is_good(gene.word))

    def _is_good(self, word: Word) -> bool:
        return not is_trivial(word) and (self.nested or not is_nested(word))

    def _grown(self, depth: int) -> Word:
        draw = self.rng.random()
        if depth == 0 or draw < 0.25:
            return self._leaf()
        if draw < 0.7:
            sign = str(self.rng.choice(["+", "-", "*", "*", "/"]))
            return (sign, *self._grown(depth - 1), *self._grown(depth - 1))
        if draw < 0.8 or not self.functions:
            return (str(self.rng.choice(list(POWERS))), *self._grown(depth - 1))
        return (str(self.rng.choice(list(self.functions))), *self._grown(depth - 1))

    def _leaf(self) -> Word:
        return (str(self.rng.choice(["x", "c", "1", "2"], p=[0.62, 0.2, 0.14, 0.04])),)

    def _drawn(self, count: int) -> Array:
        signs = np.where(self.rng.random((1, count)) < 0.75, 1.0, -1.0)
        return signs * np.exp(0.8 * self.rng.standard_normal((1, count)))

    def _place(self, gene: Gene) -> tuple[int, int]:
        start = int(self.rng.integers(len(gene.word)))
        return start, end_of(gene.word, start)

    def _crossed(self, gene: Gene, other: Gene) -> Gene:
        return gene.put(*self._place(gene), other.part(*self._place(other)))

    def _changed(self, gene: Gene) -> Gene:
        """Another expression in some place, a part in place of the whole, or a constant put to a letter."""
        start, stop = self._place(gene)
        draw = self.rng.random()
        if draw < 0.4:
            return gene.put(start, stop, self.new_gene(2))
        if draw < 0.55:
            return gene.part(start, stop)
        inner = gene.part(start, stop)
        if draw < 0.7 and self.functions:
            return gene.put(start, stop, replace(inner, word=(str(self.rng.choice(list(self.functions))), *inner.word)))
        constant = np.repeat(self._drawn(1), self.sets, 0)
        if gene.word[start] == "1" or (gene.word[start] == "c" and draw < 0.8):
            word: Word = ("c",) if gene.word[start] == "1" else ("1",)
            return gene.put(start, stop, Gene(word, constant[:, : word.count("c")]))
        sign = str(self.rng.choice(["*", "*", "+", "-"]))
        # Of x - c, the constant stands after what it is taken from.
        if sign == "-":
            return gene.put(start, stop, Gene((sign, *inner.word, "c"), np.concatenate([inner.constants, constant], 1)))
        return gene.put(start, stop, Gene((sign, "c", *inner.word), np.concatenate([constant, inner.constants], 1)))

    def _shifted(self, gene: Gene) -> Gene:
        count = gene.constants.shape[1]
        if not count:
            return self._changed(gene)
        return replace(gene, constants=gene.constants * np.exp(0.5 * self.rng.standard_normal((1, count))))


def _plain(gene: Gene) -> Gene:
    return Gene(*plain_form(gene.word, gene.constants))

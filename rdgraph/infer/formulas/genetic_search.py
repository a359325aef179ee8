"""A genetic search over sums of expressions: shapes are bred, factors are solved for, inner constants polished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rdgraph.infer.formulas.constant_fits import Target, polished
from rdgraph.infer.formulas.formula_archive import Archive, Candidate
from rdgraph.infer.formulas.prefix_terms import POWERS, Word, end_of, evaluate, size_of, weighted_sum
from rdgraph.infer.formulas.term_library import is_nested, is_trivial, plain_form, products_of, solve_subsets

# ---------------------------------------------------------------------- term breeding
# How new terms come from old ones: drawn, crossed, changed, each with the constants in it.

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


# ---------------------------------------------------------------------- genetic search
#: A sum of terms; the factor before each is solved for.
Genome = tuple[Gene, ...]
MOST_GENES = 4
#: Of every generation, so many sums whose inner constants are polished, and of each shape at most so often.
_POLISHED, _TIMES_POLISHED, _STEPS = 14, 3, 12
_TOURNAMENT = 4
#: Generations without a better score after which the search ends.
_PATIENCE = 10
#: Of the mean square of the rows: errors below this are rounding.
_ROUNDING = 1e-22
_MOST_CACHED = 4000


@dataclass(frozen=True)
class Effort:
    """How long is searched: sums in a population, and generations."""

    population: int = 160
    generations: int = 30


@dataclass
class GeneticSearch:
    """The state of a search: the population with its scores, and what was found, which stays in the archive."""

    target: Target
    archive: Archive
    breeder: Breeder
    effort: Effort
    #: Of one row: errors below it are worth no further size.
    floor: float
    _columns: dict[tuple[Word, bytes], Array] = field(default_factory=dict)
    _tries: Counter[Word] = field(default_factory=Counter)

    def run(self) -> None:
        rng = self.breeder.rng
        population = [self._split(candidate) for candidate in self.archive]
        population += [self.breeder.new_genome() for _ in range(self.effort.population)]
        scored = self._scored(population)
        best_score, idle = np.inf, 0
        for _ in range(self.effort.generations):
            lowest = min((self._score(candidate) for candidate in self.archive), default=np.inf)
            idle = 0 if lowest < best_score * (1 - 1e-3) or not np.isfinite(best_score) else idle + 1
            best_score = min(best_score, lowest)
            if self._is_exact() or idle > _PATIENCE:
                return
            genomes = [genome for genome, _ in scored]
            scores = np.array([self._score(candidate) for _, candidate in scored])
            kept = [self._split(candidate) for candidate in self.archive]
            children: list[Genome] = []
            while len(children) < self.effort.population:
                pool = kept if kept and rng.random() < 0.5 else None
                first, second = (self._parent(genomes, scores, pool) for _ in range(2))
                child = self.breeder.child(first, second)[:MOST_GENES]
                if child and self._size(child) <= self.archive.max_size:
                    children.append(child)
            best = [genomes[k] for k in np.argsort(scores)[: self.effort.population // 4]]
            scored = self._scored(best + children)

    def _is_exact(self) -> bool:
        smallest = min((c.squares for c in self.archive), default=np.inf)
        return smallest <= _ROUNDING * self.target.scale**2 * self.target.count

    def _parent(self, genomes: Sequence[Genome], scores: Array, pool: Sequence[Genome] | None) -> Genome:
        rng = self.breeder.rng
        if pool is not None:
            return pool[int(rng.integers(len(pool)))]
        drawn = rng.integers(len(genomes), size=_TOURNAMENT)
        return genomes[drawn[int(np.argmin(scores[drawn]))]]

    def _score(self, candidate: Candidate) -> float:
        """Squares in units of the floor, and what its size costs."""
        return candidate.squares / self.floor**2 + np.log(self.target.count) * candidate.size

    @staticmethod
    def _size(genome: Genome) -> int:
        return size_of(weighted_sum([gene.word for gene in genome]))

    # ------------------------------------------------------------------ scores
    def _scored(self, genomes: Sequence[Genome]) -> list[tuple[Genome, Candidate]]:
        """Every sum with its factors, those with inner constants that look best polished."""
        unique = list({tuple((g.word, g.constants.tobytes()) for g in genome): genome for genome in genomes}.values())
        scored = self._solved(unique)
        order = np.argsort([self._score(candidate) for _, candidate in scored], kind="stable")
        left = _POLISHED
        for place in order:
            genome, candidate = scored[place]
            inner = any(gene.constants.shape[1] for gene in genome)
            if left and inner and self._tries[candidate.word] < _TIMES_POLISHED:
                left -= 1
                self._tries[candidate.word] += 1
                end = polished(self.target, candidate.word, candidate.constants, _STEPS, 1e-6)
                if end.total < candidate.squares:
                    candidate = Candidate(candidate.word, end.constants, end.total)
                    scored[place] = (self._split(candidate), candidate)
            self.archive.add(candidate)
        return scored

    def _solved(self, genomes: Sequence[Genome]) -> list[tuple[Genome, Candidate]]:
        places: dict[tuple[Word, bytes], int] = {}
        columns: list[Array] = []
        usable = []
        for genome in genomes:
            held = [self._column(gene) for gene in genome]
            if all(column is not None for column in held):
                usable.append(genome)
                for gene, column in zip(genome, held, strict=True):
                    if places.setdefault(gene.key, len(columns)) == len(columns) and column is not None:
                        columns.append(column)
        if not usable:
            return []
        products = products_of(self.target, np.stack(columns, 1))
        found = []
        for count in sorted({len(genome) for genome in usable}):
            chosen = [genome for genome in usable if len(genome) == count]
            subsets = np.array([[places[gene.key] for gene in genome] for genome in chosen])
            factors, squares = solve_subsets(*products, subsets)
            for genome, row, total in zip(chosen, factors, squares.sum(-1), strict=True):
                found.append((genome, _joined(genome, row, float(total))))
        return found

    def _column(self, gene: Gene) -> Array | None:
        """The rows that one term makes (sets, rows); None where it has no finite value or none of its own."""
        if gene.key not in self._columns:
            if len(self._columns) > _MOST_CACHED:
                self._columns.clear()
            with np.errstate(all="ignore"):
                column = self.target.measure(evaluate(gene.word, gene.constants, self.target.x))
            self._columns[gene.key] = column
        column = self._columns[gene.key]
        largest = float(np.abs(column).max())
        return column if np.isfinite(largest) and 1e-8 < largest < 1e8 else None

    def _split(self, candidate: Candidate) -> Genome:
        return split_sum(candidate)


def _joined(genome: Genome, factors: Array, squares: float) -> Candidate:
    """The sum with the factors (sets, terms) before its terms."""
    parts = [part for k, gene in enumerate(genome) for part in (factors[:, k : k + 1], gene.constants)]
    return Candidate(weighted_sum([gene.word for gene in genome]), np.concatenate(parts, 1), squares)


def split_sum(candidate: Candidate) -> Genome:
    """The terms of a weighted sum without their factors."""
    word, constants, genes = candidate.word, candidate.constants, []
    while word:
        is_last = word[0] != "+"
        start = 0 if is_last else 1
        stop = end_of(word, start)
        term = word[start:stop]
        inner = term[2:] if term[0] == "*" else ("1",)
        count = inner.count("c")
        genes.append(Gene(inner, constants[:, 1 : 1 + count]))
        constants = constants[:, 1 + count :]
        word = () if is_last else word[stop:]
    return tuple(genes)

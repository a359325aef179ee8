"""A genetic search over sums of expressions: shapes are bred, factors are solved for, inner constants polished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rdgraph.distillation.constant_fits import polished
from rdgraph.distillation.formula_archive import Archive, Candidate
from rdgraph.distillation.prefix_terms import Word, end_of, evaluate, size_of, weighted_sum
from rdgraph.distillation.sampled_target import Target
from rdgraph.distillation.term_breeding import Breeder, Gene
from rdgraph.distillation.term_library import products_of, solve_subsets

Array = np.ndarray
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

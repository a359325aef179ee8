"""The search for a formula: sparse regression over a library of terms, shapes with inner constants, genetic search.

The genetic search breeds shapes, solves for the factors, and polishes inner constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product

import numpy as np

from rdgraph.infer.formulas.constant_fits import Archive, Candidate, Target, polished
from rdgraph.infer.formulas.prefix_terms import POWERS, Word, arity, end_of, evaluate, size_of, weighted_sum
from rdgraph.infer.formulas.slopes_and_inverses import SLOPES, reflected

# ---------------------------------------------------------------------- term forms
# One canonical spelling for equal terms: sums and products in order, squares, constants combined.

Array = np.ndarray
_ODD, _EVEN = (*reflected(-1), "cube"), (*reflected(1), "square")


@dataclass(frozen=True, eq=False)
class _Node:
    """A sign, its arguments, and the values (sets,) of a constant."""

    sign: str
    inner: tuple[_Node, ...] = ()
    value: Array | None = None

    def word(self) -> Word:
        return (self.sign, *(sign for node in self.inner for sign in node.word()))

    def values(self) -> list[Array]:
        first = [] if self.value is None else [self.value]
        return first + [value for node in self.inner for value in node.values()]


def plain_form(word: Word, constants: Array) -> tuple[Word, Array]:
    """The term in canonical spelling, with its constants (sets, count) in their new order.

    >>> plain_form(("*", "*", "x", "x", "+", "c", "1"), np.array([[2.0]]))
    (('*', 'c', 'square', 'x'), array([[3.]]))
    """
    columns = iter(constants.T)
    node = _plain(_read(iter(word), columns))
    values = node.values()
    ordered = np.stack(values, 1) if values else np.zeros((len(constants), 0))
    return node.word(), ordered


def _read(word: Iterator[str], columns: Iterator[Array]) -> _Node:
    sign = next(word)
    if sign == "c":
        return _Node("c", (), next(columns))
    return _Node(sign, tuple(_read(word, columns) for _ in range(arity(sign))))


def _plain(node: _Node) -> _Node:
    inner = tuple(_plain(part) for part in node.inner)
    plain = _Node(node.sign, inner, node.value)
    if not inner:
        return plain
    word = plain.word()
    if "x" not in word and "c" in word:
        values = np.stack(plain.values(), 1)
        return _Node("c", (), evaluate(word, values, np.zeros(1))[:, 0])
    if plain.sign in ("+", "*"):
        return _ordered(plain)
    if plain.sign == "-" and inner[1].sign == "c" and inner[1].value is not None and (inner[1].value < 0).all():
        return _ordered(_Node("+", (inner[0], _Node("c", (), -inner[1].value))))
    if plain.sign in (*_ODD, *_EVEN):
        return _without_sign(plain)
    return plain


def _ordered(node: _Node) -> _Node:
    left, right = sorted(node.inner, key=_rank)
    if left.sign == "c" and left.value is not None and right.sign == node.sign and right.inner[0].sign == "c":
        # c*(c*w) and c + (c + w) have one constant.
        other = right.inner[0].value
        value = left.value * other if node.sign == "*" else left.value + other
        return _Node(node.sign, (_Node("c", (), value), right.inner[1]))
    if left.sign == "c" and node.sign == "+":
        # In c + w the variable part is written first: w - 0.3.
        if left.value is not None and (left.value < 0).all():
            return _Node("-", (right, _Node("c", (), -left.value)))
        return _Node("+", (left, right))
    same = left.word() == right.word() and not left.values()
    if same:
        return _Node("square", (left,)) if node.sign == "*" else _Node("*", (_Node("2"), left))
    if node.sign == "*" and left.sign == "x" and right.word() == ("square", "x"):
        return _Node("cube", (left,))
    return _Node(node.sign, (left, right))


def _without_sign(node: _Node) -> _Node:
    """An even function of -w is that of w; the sign of an odd one belongs to the factor of the term."""
    (inner,) = node.inner
    factor = inner.inner[0] if inner.sign == "*" else None
    if node.sign in _EVEN and factor is not None and factor.value is not None and (factor.value < 0).all():
        return _Node(node.sign, (_Node("*", (_Node("c", (), -factor.value), inner.inner[1])),))
    return node


def _rank(node: _Node) -> tuple[int, int, Word]:
    """Sort key: constants, numbers, the variable, its powers, then larger terms."""
    kind = 0 if node.sign == "c" else 1 if arity(node.sign) == 0 and node.sign != "x" else 2 if node.sign == "x" else 3
    word = node.word()
    return kind, size_of(word), word


def signs_moved(word: Word, factor: Array, constants: Array) -> tuple[Word, Array, Array]:
    """A term, its factor and its constants, with the signs moved to where they are easy to read.

    The argument of an odd function is made a positive multiple, and a negative factor swaps a difference.

    >>> signs_moved(("tanh", "*", "c", "x"), np.array([2.0]), np.array([[-3.0]]))
    (('tanh', '*', 'c', 'x'), array([-2.]), array([[3.]]))
    >>> signs_moved(("*", "x", "-", "x", "1"), np.array([-2.0]), np.zeros((1, 0)))[:2]
    (('*', 'x', '-', '1', 'x'), array([2.]))
    """
    if len(word) > 2 and word[0] in _ODD and word[1:3] == ("*", "c") and (constants[:, 0] < 0).all():
        factor, constants = -factor, np.concatenate([-constants[:, :1], constants[:, 1:]], 1)
    position = _difference(word)
    if position is None or not (factor < 0).all():
        return word, factor, constants
    middle = end_of(word, position + 1)
    stop = end_of(word, middle)
    first, second = word[position + 1 : middle], word[middle:stop]
    before = word[:position].count("c")
    cuts = np.cumsum([before, first.count("c"), second.count("c")])
    parts = np.split(constants, cuts, axis=1)
    swapped = (*word[: position + 1], *second, *first, *word[stop:])
    return swapped, -factor, np.concatenate([parts[0], parts[2], parts[1], parts[3]], 1)


def _difference(word: Word, position: int = 0) -> int | None:
    """The position of a factor that is a difference; None if there is none."""
    if word[position] == "-":
        return position
    if word[position] != "*":
        return None
    left = _difference(word, position + 1)
    return left if left is not None else _difference(word, end_of(word, position + 1))


def is_trivial(word: Word) -> bool:
    """Whether a part of a term is redundant: w - w, w/w, 1*w, w/1, or a function of a number.

    >>> is_trivial(("*", "x", "-", "x", "x")), is_trivial(("tanh", "x"))
    (True, False)
    """
    return any(_is_idle(word, position) for position in range(len(word)))


def _is_idle(word: Word, position: int) -> bool:
    sign = word[position]
    if arity(sign) == 0:
        return False
    if arity(sign) == 1:
        return arity(word[position + 1]) == 0 and word[position + 1] not in ("x", "c")
    middle = end_of(word, position + 1)
    left, right = word[position + 1 : middle], word[middle : end_of(word, middle)]
    if sign in ("-", "/") and left == right and "c" not in left:
        return True
    return (sign == "*" and ("1",) in (left, right)) or (sign == "/" and right == ("1",))


def is_nested(word: Word) -> bool:
    """Whether a function contains a function.

    >>> is_nested(("tanh", "+", "x", "sin", "x")), is_nested(("*", "tanh", "x", "sin", "x"))
    (True, False)
    """
    places = [position for position, sign in enumerate(word) if sign in SLOPES]
    return any(sign in SLOPES for position in places for sign in word[position + 1 : end_of(word, position)])


# ---------------------------------------------------------------------- term library
#: Terms without inner constants: powers, and the factored forms of reactions.
POLYNOMIALS: tuple[Word, ...] = (
    ("1",),
    ("x",),
    ("square", "x"),
    ("cube", "x"),
    ("square", "square", "x"),
    ("*", "x", "square", "square", "x"),
    ("*", "x", "-", "1", "x"),
    ("*", "x", "+", "1", "x"),
    ("-", "x", "cube", "x"),
    ("*", "x", "-", "1", "square", "x"),
    ("*", "square", "x", "-", "1", "x"),
)
MOST_TERMS = 4
#: A share of the diagonal added to it, so that terms that agree at all points do no harm.
_RIDGE = 1e-12
#: Columns below this size are zero: a term can vanish for one set of points and not for another.
_NOTHING = 1e-100


def library(functions: Sequence[str]) -> list[Word]:
    """All terms: powers, factored forms, each function, and x times each."""
    return [*POLYNOMIALS, *((name, "x") for name in functions), *(("*", "x", name, "x") for name in functions)]


def solve_subsets(gram: Array, along: Array, total: Array, subsets: Array) -> tuple[Array, Array]:
    """Coefficients (choices, sets, terms) and squares (choices, sets) of every choice of columns at once.

    `gram` (sets, columns, columns) and `along` (sets, columns) are the products of the columns with each other and with
    the rows, `total` (sets,) the squares of the rows.
    """
    chosen = gram[:, subsets[:, :, None], subsets[:, None, :]].swapaxes(0, 1)
    right = along[:, subsets].swapaxes(0, 1)
    size = np.sqrt(np.diagonal(chosen, axis1=2, axis2=3))
    scale = np.where(size > _NOTHING, size, 1.0)
    matrix = chosen / (scale[..., :, None] * scale[..., None, :]) + _RIDGE * np.eye(subsets.shape[1])
    coefficients = np.linalg.solve(matrix, (right / scale)[..., None])[..., 0] / scale
    explained = 2 * (coefficients * right).sum(-1) - np.einsum("csa,csab,csb->cs", coefficients, chosen, coefficients)
    return coefficients, np.maximum(total - explained, 0.0)


def products_of(target: Target, columns: Array) -> tuple[Array, Array, Array]:
    """The arguments of `solve_subsets` for columns (sets, columns, rows)."""
    return columns @ columns.swapaxes(1, 2), (columns @ target.y[..., None])[..., 0], np.square(target.y).sum(-1)


def columns_of(target: Target, words: Sequence[Word]) -> Array:
    """The rows of terms without constants (sets, terms, rows)."""
    nothing = np.zeros((target.sets, 0))
    return np.stack([target.measure(evaluate(word, nothing, target.x)) for word in words], 1)


def is_usable(columns: Array) -> Array:
    """Which of the columns (sets, columns, rows) are finite and not huge."""
    return np.asarray(np.isfinite(columns).all((0, 2)) & (np.abs(columns).max((0, 2)) < 1e8))


def search_library(target: Target, functions: Sequence[str], archive: Archive) -> None:
    """Fit every choice of up to four terms of the library; adds the best of each size to the archive."""
    words = [word for word in library(functions) if size_of(word) <= archive.max_size]
    columns = columns_of(target, words)
    usable = is_usable(columns)
    words, columns = [word for word, good in zip(words, usable, strict=True) if good], columns[:, usable]
    gram, along, total = products_of(target, columns)
    for count in range(1, MOST_TERMS + 1):
        subsets = np.array(list(combinations(range(len(words)), count)))
        if not len(subsets):
            return
        coefficients, squares = solve_subsets(gram, along, total, subsets)
        sizes = size_sums(np.array([size_of(word) for word in words]), subsets, [word == ("1",) for word in words])
        for choice in best_of_each(sizes, squares.sum(-1), archive.keep):
            word = weighted_sum([words[k] for k in subsets[choice]])
            archive.add(Candidate(word, coefficients[choice], float(squares[choice].sum())))


def size_sums(sizes: Array, subsets: Array, is_one: Sequence[bool]) -> Array:
    """The sizes of the weighted sums of every choice: terms with their factors, and the plus signs between."""
    with_constants = sizes + np.where(is_one, 1, 3)
    return with_constants[subsets].sum(-1) + subsets.shape[1] - 1


def best_of_each(sizes: Array, squares: Array, keep: int) -> Array:
    """The indices of the `keep` smallest squares of every size."""
    order = np.lexsort((squares, sizes))
    sorted_sizes = sizes[order]
    first = np.searchsorted(sorted_sizes, sorted_sizes)
    return order[np.arange(len(order)) - first < keep]


# ---------------------------------------------------------------------- shape search
# Terms with inner constants: each shape from a grid of constants, alone and with a linear or constant term, polished.

#: {f} is replaced by each function; every c is a constant.
SHAPES: tuple[str, ...] = (
    "* x * - 1 x - x c",
    "* square x - x c",
    "* x - x c",
    "* x - 1 * c square x",
    "* x - 1 * c x",
    "/ x + 1 * c square x",
    "/ x + 1 * c abs x",
    "/ x + c x",
    "/ square x + c square x",
    "/ 1 + 1 * c square x",
    "exp * c square x",
    "* x exp * c square x",
    "* x exp * c x",
    "{f} * c x",
    "{f} - x c",
    "{f} - * c x c",
    "* x {f} * c x",
    "* x {f} - x c",
)
#: Terms that may be added to a shape.
COMPANIONS: tuple[Word, ...] = (("x",), ("1",))
#: Magnitudes of the starting constants, of either sign.
_GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
_SHAPE_STEPS = 15


def shapes(functions: Sequence[str]) -> list[Word]:
    """The terms of `SHAPES` in the given functions."""
    known = [shape for shape in SHAPES if all(name in functions or name not in SLOPES for name in shape.split())]
    return [tuple(shape.format(f=name).split()) for shape in known for name in (functions if "{f}" in shape else [""])]


def search_shapes(target: Target, functions: Sequence[str], archive: Archive) -> None:
    """Fit every shape alone, plus a multiple of the variable, and plus a constant, from the grid's best point."""
    companions = columns_of(target, COMPANIONS)
    for shape in shapes(functions):
        points, columns = _grid_columns(target, shape)
        count, products = len(points), products_of(target, np.concatenate([columns, companions], 1))
        for places in ([], [count], [count + 1]) if count else ():
            factors, squares = solve_subsets(*products, np.array([[point, *places] for point in range(count)]))
            best = int(squares.sum(-1).argmin())
            inner = np.repeat(points[best : best + 1], target.sets, 0)
            constants = np.concatenate([factors[best, :, :1], inner, factors[best, :, 1:]], 1)
            word = weighted_sum([shape, *(COMPANIONS[column - count] for column in places)])
            end = polished(target, word, constants, _SHAPE_STEPS, 1e-6)
            archive.add(Candidate(word, end.constants, end.total))


def _grid_columns(target: Target, shape: Word) -> tuple[Array, Array]:
    """Constants (points, count) of the grid, and the rows (sets, points, rows) of the shape with each."""
    signed = [sign * size for size in _GRID for sign in (1, -1)]
    points = np.array(list(product(signed, repeat=shape.count("c"))))
    repeated, x = np.repeat(points, target.sets, 0), np.tile(target.x, (len(points), 1))
    with np.errstate(all="ignore"):
        values = evaluate(shape, repeated, x).reshape(len(points), *target.x.shape)
        columns = target.measure(values).swapaxes(0, 1)
    usable = is_usable(columns)
    return points[usable], columns[:, usable]


# ---------------------------------------------------------------------- term breeding
# New terms from old ones: drawn, crossed, mutated, each with its constants.

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

    @property
    def plain(self) -> Gene:
        """The term in its one canonical spelling, with its constants in the new order."""
        return Gene(*plain_form(self.word, self.constants))

    def part(self, start: int, stop: int) -> Gene:
        """The expression between two positions."""
        before = self.word[:start].count("c")
        inside = self.word[start:stop].count("c")
        return Gene(self.word[start:stop], self.constants[:, before : before + inside])

    def put(self, start: int, stop: int, other: Gene) -> Gene:
        """The term with another expression between two positions."""
        before, after = self.word[:start].count("c"), self.word[:stop].count("c")
        parts = (self.constants[:, :before], other.constants, self.constants[:, after:])
        return Gene((*self.word[:start], *other.word, *self.word[stop:]), np.concatenate(parts, 1))


@dataclass(frozen=True)
class Breeder:
    """Draws terms in the given functions; the same seed gives the same terms."""

    functions: Sequence[str]
    sets: int
    rng: np.random.Generator
    #: Whether functions may be nested.
    nested: bool = False

    def new_genome(self) -> tuple[Gene, ...]:
        """Draw a genome of one to three terms."""
        return tuple(self.new_gene() for _ in range(int(self.rng.integers(1, 4))))

    def new_gene(self, depth: int = 3) -> Gene:
        word = self._grown(depth)
        while not self.nested and is_nested(word):
            word = self._grown(depth)
        return Gene(*plain_form(word, np.repeat(self._drawn(word.count("c")), self.sets, 0)))

    def child(self, first: Sequence[Gene], second: Sequence[Gene]) -> tuple[Gene, ...]:
        """A mutated copy of one sum, or a crossing of two; repeated terms are merged."""
        genes = list(first)
        position = int(self.rng.integers(len(genes)))
        other = second[int(self.rng.integers(len(second)))]
        match int(self.rng.choice(6, p=[0.16, 0.2, 0.26, 0.12, 0.12, 0.14])):
            case 0:
                genes[position] = other
            case 1:
                genes[position] = self._crossed(genes[position], other).plain
            case 2:
                genes[position] = self._changed(genes[position]).plain
            case 3:
                genes.append(other if self.rng.random() < 0.5 else self.new_gene(2))
            case 4:
                del genes[position]
            case _:
                genes[position] = self._shifted(genes[position]).plain
        unique = {gene.key: gene for gene in genes if "x" in gene.word or gene.word == ("1",)}
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

    def _span(self, gene: Gene) -> tuple[int, int]:
        start = int(self.rng.integers(len(gene.word)))
        return start, end_of(gene.word, start)

    def _crossed(self, gene: Gene, other: Gene) -> Gene:
        return gene.put(*self._span(gene), other.part(*self._span(other)))

    def _changed(self, gene: Gene) -> Gene:
        """A mutation: another expression at some position, a part instead of the whole, or a constant added."""
        start, stop = self._span(gene)
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
        # In x - c the constant comes second.
        if sign == "-":
            return gene.put(start, stop, Gene((sign, *inner.word, "c"), np.concatenate([inner.constants, constant], 1)))
        return gene.put(start, stop, Gene((sign, "c", *inner.word), np.concatenate([constant, inner.constants], 1)))

    def _shifted(self, gene: Gene) -> Gene:
        count = gene.constants.shape[1]
        if not count:
            return self._changed(gene)
        return replace(gene, constants=gene.constants * np.exp(0.5 * self.rng.standard_normal((1, count))))


# ---------------------------------------------------------------------- genetic search
#: A sum of terms; the factor of each is solved for.
Genome = tuple[Gene, ...]
MOST_GENES = 4
#: How many sums of a generation have their inner constants polished, how often one shape, and the steps.
_POLISHED, _TIMES_POLISHED, _STEPS = 14, 3, 12
_TOURNAMENT = 4
#: Generations without a better score after which the search ends.
_PATIENCE = 10
#: Squares below this share of the mean square of the rows are rounding.
_ROUNDING = 1e-22
_MOST_CACHED = 4000


@dataclass(frozen=True)
class Effort:
    """The length of the search: sums in a population, and generations."""

    population: int = 160
    generations: int = 30


@dataclass
class GeneticSearch:
    """A genetic search; the best formulas stay in the archive."""

    target: Target
    archive: Archive
    breeder: Breeder
    effort: Effort
    #: The error of one row below which a larger formula is not worth it.
    floor: float
    _columns: dict[tuple[Word, bytes], Array] = field(default_factory=dict)
    _tries: Counter[Word] = field(default_factory=Counter)

    def run(self) -> None:
        rng = self.breeder.rng
        population = [split_sum(candidate) for candidate in self.archive]
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
            archived = [split_sum(candidate) for candidate in self.archive]
            children: list[Genome] = []
            while len(children) < self.effort.population:
                pool = archived if archived and rng.random() < 0.5 else None
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
        """Squares in units of the floor, plus the cost of the size."""
        return candidate.squares / self.floor**2 + np.log(self.target.count) * candidate.size

    @staticmethod
    def _size(genome: Genome) -> int:
        return size_of(weighted_sum([gene.word for gene in genome]))

    # ------------------------------------------------------------------ scores
    def _scored(self, genomes: Sequence[Genome]) -> list[tuple[Genome, Candidate]]:
        """Every sum with its factors; the best sums with inner constants are polished."""
        unique = list({tuple((g.word, g.constants.tobytes()) for g in genome): genome for genome in genomes}.values())
        scored = self._solved(unique)
        order = np.argsort([self._score(candidate) for _, candidate in scored], kind="stable")
        remaining = _POLISHED
        for index in order:
            genome, candidate = scored[index]
            inner = any(gene.constants.shape[1] for gene in genome)
            if remaining and inner and self._tries[candidate.word] < _TIMES_POLISHED:
                remaining -= 1
                self._tries[candidate.word] += 1
                end = polished(self.target, candidate.word, candidate.constants, _STEPS, 1e-6)
                if end.total < candidate.squares:
                    candidate = Candidate(candidate.word, end.constants, end.total)
                    scored[index] = (split_sum(candidate), candidate)
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
        solved = []
        for count in sorted({len(genome) for genome in usable}):
            chosen = [genome for genome in usable if len(genome) == count]
            subsets = np.array([[places[gene.key] for gene in genome] for genome in chosen])
            factors, squares = solve_subsets(*products, subsets)
            for genome, row, total in zip(chosen, factors, squares.sum(-1), strict=True):
                solved.append((genome, joined_sum(genome, row, float(total))))
        return solved

    def _column(self, gene: Gene) -> Array | None:
        """The rows of one term (sets, rows); None where it is not finite or negligible."""
        if gene.key not in self._columns:
            if len(self._columns) > _MOST_CACHED:
                self._columns.clear()
            with np.errstate(all="ignore"):
                column = self.target.measure(evaluate(gene.word, gene.constants, self.target.x))
            self._columns[gene.key] = column
        column = self._columns[gene.key]
        largest = float(np.abs(column).max())
        return column if np.isfinite(largest) and 1e-8 < largest < 1e8 else None


def joined_sum(genome: Sequence[Gene], factors: Array, squares: float) -> Candidate:
    """The sum of terms with factors (sets, terms)."""
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

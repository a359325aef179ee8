"""Comparisons of two right-hand sides, and `Equivalence`, the verdict: proved, under conditions, or refuted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, Undecided
from rdgraph.language.answer_symbols import public
from rdgraph.language.assumptions import Assumptions
from rdgraph.language.normal_form import H0, Act, Algebra, H, Mix
from rdgraph.language.reader import STRUCTURAL
from rdgraph.language.tree import Call, Fold, Kind, Name, Over, Power
from rdgraph.language.unfolding import unfolded
from rdgraph.reals.budget import limited
from rdgraph.reals.domain import Domain
from rdgraph.reals.judge import Possibility, always, possible
from rdgraph.systems.canonical.function_identities import CanonicalForm, canonical, freed, is_zero
from rdgraph.theory.equality.counterexample import Hint, Witness, find_witness
from rdgraph.theory.equality.exact_values import not_parallel
from rdgraph.theory.equality.hypotheses import Hypotheses
from rdgraph.vocabulary.functions import FUNCTIONS, REALS

# ---------------------------------------------------------------------- definedness


def needed_for_a_value(tree: sp.Basic, algebra: Algebra, domain: Domain) -> tuple[sp.Basic, ...]:
    """What must hold of letters and states for a tree to have a value, less what the domain grants.

    >>> from rdgraph.systems.parser import parse
    >>> s = parse("sqrt(H) + H0/beta + H0/H")
    >>> [in_words(c) for c in needed_for_a_value(s.expression, s.algebra, s.domain)]
    ['H >= 0', 'H != 0']
    """
    needed = dict.fromkeys(_Needs(algebra)(unfolded(tree)))
    return tuple(c for c in needed if _follows(c, (), domain) is not True)


def are_the_same(first: Iterable[sp.Basic], second: Iterable[sp.Basic], domain: Domain) -> bool:
    """Whether two sets of conditions are proved to mean the same on a domain."""
    one, other = tuple(first), tuple(second)
    return all(_follows(c, other, domain) for c in one) and all(_follows(c, one, domain) for c in other)


def in_words(condition: sp.Basic) -> str:
    """A condition as text, both sides with positive coefficients where it is an inequality."""
    gap = sp.expand(condition.lhs - condition.rhs)
    if isinstance(condition, sp.Ne):
        return f"{public(gap)} != 0"
    terms = sp.Add.make_args(gap)
    if len(terms) == 1:
        sign = gap.could_extract_minus_sign()
        return f"{public(-gap if sign else gap)} {'<=' if sign else '>='} 0"
    below = [t for t in terms if t.could_extract_minus_sign()]
    upper = public(sp.Add(*(t for t in terms if t not in below)))
    return f"{public(-sp.Add(*below))} <= {upper}"


def _follows(condition: sp.Basic, others: tuple[sp.Basic, ...], domain: Domain) -> bool | None:
    if condition in others:
        return True
    return always(*freed((condition, *others, *domain.conditions)))


class _Needs(Fold[Iterator[sp.Basic]]):
    """The conditions of a node, then those of its parts."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra

    def name(self, node: Name) -> Iterator[sp.Basic]:
        if node.name in self.algebra.definitions:
            yield from self(self.algebra.definitions[node.name])

    def over(self, node: Over) -> Iterator[sp.Basic]:
        yield from _nonzero(self.algebra.normal(node.right))
        yield from self.other(node)

    def power(self, node: Power) -> Iterator[sp.Basic]:
        if node.exponent < 0:
            yield from _nonzero(self.algebra.normal(node.base))
        yield from self.other(node)

    def call(self, node: Call) -> Iterator[sp.Basic]:
        domain = FUNCTIONS[node.function].domain
        if domain != REALS:
            inside = self.algebra.normal(node.argument)
            yield from (r for r in domain.relations(inside) if r.func(*r.args) != sp.true)
        yield from self.other(node)

    def number(self, node: sp.Rational) -> Iterator[sp.Basic]:
        yield from ()

    def other(self, node: sp.Basic) -> Iterator[sp.Basic]:
        for part in node.args:
            yield from self(part)


def _nonzero(value: sp.Expr) -> Iterator[sp.Basic]:
    if not value.is_nonzero:
        yield sp.Ne(value, 0, evaluate=False)


# ---------------------------------------------------------------------- coincidence
# When two expressions coincide: conditions on coefficients, masks and matrices under which a difference vanishes.
#
# The difference is a fraction in independent generators; its coefficients must vanish. Every answer is confirmed by
# substitution. Absolute values of coefficients are split into their two cases, masks into M = 0 and M = 1, and a mixing
# matrix is tried as a multiple of the identity.

#: Letters that a value may use, widest first: what varies by node or channel can be set to one number, not reversely.
_WIDTH = {Kind.NODE: 0, Kind.CHANNEL: 1, Kind.SCALAR: 2}
MAX_CASES = 16
SOLVE_SECONDS = 2.0


@dataclass(frozen=True)
class Alternative:
    """One set of conditions: values of letters, values of matrices (as multiples of I), inequalities."""

    values: tuple[tuple[sp.Symbol, sp.Expr], ...]
    matrices: tuple[tuple[str, sp.Expr], ...] = ()
    region: tuple[sp.Basic, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """In words: matrices, coefficients by name, inequalities."""
        matrices = [f"{name} = {_multiple_of_identity(value)}" for name, value in self.matrices]
        ordered = sorted(self.values, key=lambda pair: pair[0].name)
        return (*matrices, *(f"{x.name} = {public(v)}" for x, v in ordered), *map(in_words, self.region))

    @property
    def conditions(self) -> tuple[sp.Basic, ...]:
        return (*(sp.Eq(x, v, evaluate=False) for x, v in self.values), *self.region)


@dataclass(frozen=True)
class Coincidence:
    """Alternatives that are admissible, those that signs or kinds exclude, and whether there are no others."""

    admissible: tuple[Alternative, ...]
    excluded: tuple[Alternative, ...]
    is_complete: bool


def coincidence(difference: sp.Expr, rules: Hypotheses) -> Coincidence:
    """All conditions found under which a normal form vanishes.

    Conditions are complete where the generators are independent and free of coefficients, the equations polynomial,
    and operators and matrices enter in a way that leaves no other possibility.
    """
    return _Solver(rules).solve(difference)


class _Solver:
    def __init__(self, rules: Hypotheses) -> None:
        self.rules, self.algebra, self.domain = rules, rules.algebra, rules.domain
        self.kinds = rules.vocabulary.kinds
        self.is_complete = not rules.word_rules.rules

    def solve(self, difference: sp.Expr) -> Coincidence:
        names = sorted({w.name for atom in difference.atoms(Mix) for w in atom.word})
        scales = {name: sp.Dummy(name, real=True) for name in names}
        scaled = scaled_matrices(difference, scales) if names else difference
        if names and not self._matrices_are_separate(difference):
            self.is_complete = False
        admissible: list[Alternative] = []
        excluded: list[Alternative] = []
        for substitution, part in self._mask_cases(scaled):
            for region, form in self._regions(part):
                for solution in self._solutions(form, scales):
                    candidate = self._alternative({**substitution, **solution}, scales, region)
                    if self._is_excluded(candidate):
                        excluded.append(candidate)
                    elif self._confirmed(difference, candidate):
                        admissible.append(candidate)
                    else:
                        self.is_complete = False
        return Coincidence(self._widest(admissible), self._widest(excluded), self.is_complete)

    # ------------------------------------------------------------------ cases
    def _mask_cases(self, difference: sp.Expr) -> Iterator[tuple[dict[sp.Symbol, sp.Expr], sp.Expr]]:
        """For every mask at once, and for masks that are 0 or 1 in all nodes."""
        yield {}, difference
        for mask in self.algebra.masks:
            if difference.has(mask):
                for value in (sp.S.Zero, sp.S.One):
                    yield {mask: value}, difference.xreplace({mask: value})

    def _regions(self, difference: sp.Expr) -> Iterator[tuple[tuple[sp.Basic, ...], CanonicalForm]]:
        """Forms without absolute values of coefficients, each with the inequalities under which it holds."""
        todo: list[tuple[tuple[sp.Basic, ...], sp.Expr]] = [((), difference)]
        for _ in range(MAX_CASES):
            if not todo:
                return
            region, expression = todo.pop(0)
            form = canonical(expression, self.algebra, self.domain.where(*region))
            inside = [g.args[0] for g in form.moduli if not g.has(H, H0, Act, Mix)]
            if not inside:
                yield region, form
                continue
            for sign in (1, -1):
                replaced = form.numerator.xreplace({sp.Abs(inside[0]): sign * inside[0]})
                todo.append(((*region, sp.Ge(sign * inside[0], 0, evaluate=False)), replaced))
        self.is_complete = self.is_complete and not todo

    # ------------------------------------------------------------------ equations
    def _solutions(self, form: CanonicalForm, scales: Mapping[str, sp.Dummy]) -> list[dict[sp.Symbol, sp.Expr]]:
        """Values of letters that make all coefficients vanish, also where functions with letters inside agree."""
        if form.numerator == 0:
            return [{}]
        letters = self._letters(form.numerator, scales)
        bound = [g for g in form.generators if g.free_symbols & set(letters)]
        wide = any(atom.free_symbols & set(letters) for atom in form.numerator.atoms(Act, Mix))
        if bound or wide or not form.is_independent:
            self.is_complete = False
        solutions = self._solved(form, letters)
        for guess in self._coinciding(bound, letters):
            rest = canonical(form.numerator.xreplace(guess), self.algebra, self.domain)
            solutions += [{**guess, **more} for more in self._solved(rest, self._letters(rest.numerator, scales))]
        return solutions

    def _letters(self, expression: sp.Expr, scales: Mapping[str, sp.Dummy]) -> list[sp.Symbol]:
        """Unknown coefficients of an expression, widest kind first."""
        known = [
            x for n, x in self.algebra.symbols.items() if self.kinds.get(n) in _WIDTH and x not in self.algebra.masks
        ]
        present = [x for x in known if x in expression.free_symbols]
        ordered = sorted(present, key=lambda x: (_WIDTH[self.kinds[x.name]], x.name))
        return [*(x for x in scales.values() if x in expression.free_symbols), *ordered]

    def _solved(self, form: CanonicalForm, letters: list[sp.Symbol]) -> list[dict[sp.Symbol, sp.Expr]]:
        if form.numerator == 0:
            return [{}]
        solutions: list[dict[sp.Symbol, sp.Expr]] = []
        masks = [m for m in self.algebra.masks if form.numerator.has(m)]
        parameters = [masks, []] if any(self.kinds.get(x.name) is Kind.NODE for x in letters) else [[]]
        for allowed in parameters:
            equations = list(form.collected([*letters, *allowed]).values())
            solutions += [s for s in self._roots(equations, letters) if s not in solutions]
        return solutions

    def _roots(self, equations: list[sp.Expr], letters: list[sp.Symbol]) -> list[dict[sp.Symbol, sp.Expr]]:
        plain = {x: sp.Dummy(x.name, real=True) for x in letters}
        back = {v: k for k, v in plain.items()}
        system = [e.xreplace(plain) for e in equations]
        if any(not e.free_symbols & set(back) for e in system):
            return []
        if not all(e.is_polynomial(*back) for e in system):
            self.is_complete = False
        if len(system) > 1 and any(e.has(sp.Function) for e in system):
            return []  # several transcendental equations: sympy rarely solves them, and never quickly
        try:
            solutions = limited(SOLVE_SECONDS, sp.solve, system, list(back), dict=True)
        except (NotImplementedError, Undecided):
            self.is_complete = False
            return []
        real = [s for s in solutions if not any(sp.sympify(v).has(sp.I) for v in s.values())]
        self.is_complete = self.is_complete and all(_is_imaginary(s) for s in solutions if s not in real)
        return [{back[x]: sp.sympify(v).xreplace(back) for x, v in s.items()} for s in real]

    def _coinciding(self, bound: list[sp.Expr], letters: list[sp.Symbol]) -> Iterator[dict[sp.Symbol, sp.Expr]]:
        """Values of letters for which two functions with coefficients inside become one, or one becomes constant."""
        arguments = [g.args[0] for g in bound if g.args]
        gaps = [a - sign * b for a, b in combinations(arguments, 2) for sign in (1, -1)] + arguments
        seen: list[dict[sp.Symbol, sp.Expr]] = []
        for gap in gaps:
            form = canonical(gap, self.algebra, self.domain)
            for guess in self._roots(list(form.collected(letters).values()), letters):
                if guess and guess not in seen:
                    seen.append(guess)
                    yield guess

    # ------------------------------------------------------------------ what is kept
    def _alternative(
        self, values: Mapping[sp.Symbol, sp.Expr], scales: Mapping[str, sp.Dummy], region: tuple[sp.Basic, ...]
    ) -> Alternative:
        named = {x: name for name, x in scales.items()}
        matrices = tuple(sorted((named[x], v) for x, v in values.items() if x in named))
        return Alternative(tuple((x, v) for x, v in values.items() if x not in named), matrices, region)

    def _is_excluded(self, candidate: Alternative) -> bool:
        """One number would have to vary, or signs and relations leave no room."""
        for x, v in (*candidate.values, *((sp.Symbol(n), v) for n, v in candidate.matrices)):
            kinds = {self.kinds.get(y.name, Kind.SCALAR) for y in v.free_symbols} - {Kind.SCALAR}
            if not kinds <= {self.kinds.get(x.name, Kind.SCALAR)} - {Kind.MATRIX}:
                return True
        return possible(*self.domain.conditions, *candidate.conditions).outcome is Possibility.IMPOSSIBLE

    def _confirmed(self, difference: sp.Expr, candidate: Alternative) -> bool:
        """Whether the difference is proved to vanish under the conditions."""
        values = dict(candidate.values)
        replaced = difference.xreplace(values)
        if candidate.matrices:
            scale = {name: v.xreplace(values) for name, v in candidate.matrices}
            replaced = scaled_matrices(replaced, scale)
        conditions = [c.xreplace(values) for c in (*self.domain.conditions, *candidate.region)]
        open_conditions = tuple(c for c in conditions if c not in (sp.true, sp.false))
        return is_zero(sp.expand(replaced), self.algebra, Domain(open_conditions))

    def _widest(self, alternatives: list[Alternative]) -> tuple[Alternative, ...]:
        """Alternatives that are not special cases of others."""
        widest: list[Alternative] = []
        for one in sorted(dict.fromkeys(alternatives), key=lambda a: len(a.texts)):
            if not any(self._contains(other, one) for other in widest):
                widest.append(one)
        return tuple(widest)

    def _contains(self, wide: Alternative, narrow: Alternative) -> bool:
        if not set(wide.matrices) <= set(narrow.matrices):
            return False
        return all(always(c, *self.domain.conditions, *narrow.conditions) is True for c in wide.conditions)

    def _matrices_are_separate(self, difference: sp.Expr) -> bool:
        """One matrix, alone and outside all functions, without channel coefficients: then only multiples of I fit."""
        form = canonical(difference, self.algebra, self.domain)
        words = {atom.word for atom in form.numerator.atoms(Mix)}
        inside = any(g.has(Mix) for g in form.generators) or form.denominator.has(Mix)
        channels = any(self.kinds.get(x.name) is Kind.CHANNEL for x in form.numerator.free_symbols)
        linear = all(
            sum(not isinstance(f, Mix | sp.Symbol) for f in sp.Mul.make_args(term) if f.free_symbols) == 0
            for term in sp.Add.make_args(form.numerator)
            if term.has(Mix)
        )
        return linear and not channels and not inside and len(words) == 1 and all(len(word) == 1 for word in words)


def scaled_matrices(expression: sp.Expr, scales: Mapping[str, sp.Expr]) -> sp.Expr:
    """Every named mixing matrix replaced by a multiple of the identity."""

    def replaced(atom: Mix) -> sp.Expr:
        rest = tuple(w for w in atom.word if w.name not in scales)
        factor = sp.Mul(*(scales[w.name] for w in atom.word if w.name in scales))
        return factor * (Mix(rest, atom.inner) if rest else atom.inner)

    return expression.replace(lambda e: isinstance(e, Mix), replaced)


def _is_imaginary(solution: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether some value is known not to be real, whatever the letters; radicals may hide real numbers."""
    return any(sp.sympify(v).is_real is False for v in solution.values())


def _multiple_of_identity(value: sp.Expr) -> str:
    short = {0: "0", 1: "I", -1: "-I"}
    if value in short:
        return short[value]
    text = str(public(value))
    return f"({text})*I" if isinstance(value, sp.Add) else f"{text}*I"


# ---------------------------------------------------------------------- comparison
PROVED, RESTRICTED, CONDITIONAL = "proved", "proved where defined", "holds if"
REFUTED = "refuted"

LAPLACIAN = "L = I - A"


@dataclass(frozen=True, repr=False)
class Equivalence(Answer):
    """The verdict; true only for the outcome "proved": both sides are defined on the same set and equal there.

    `domain` says where the sides are defined, if not everywhere. Sides that are equal wherever both are defined, but
    not defined on the same set, are "proved where defined", which is not true. `conditions` lists alternative sets of
    equations and inequalities under which the systems are equal; `is_complete` tells whether there are no others, and
    `witness` shows that they are needed. `time_factor` is the speed of the first system in units of the second, where
    `rescale_time` asked for one. `fields` pairs the fields of the first system with those of the second, where there
    are several.
    """

    outcome: str
    conditions: tuple[tuple[str, ...], ...] = ()
    witness: Witness | None = None
    reason: str = ""
    domain: tuple[str, ...] = ()
    is_complete: bool = True
    time_factor: str = ""
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def value(self) -> bool | None:
        """Whether the systems are equal, perhaps under conditions; False with a counter-example, None if undecided."""
        return None if self.outcome == Status.UNDECIDED else self.outcome != REFUTED

    @property
    def status(self) -> Status:
        """proved, also for what is refuted, or undecided."""
        return Status.UNDECIDED if self.value is None else Status.PROVED

    def __bool__(self) -> bool:
        return self.outcome == PROVED

    def __str__(self) -> str:
        if self.outcome == CONDITIONAL:
            others = "" if self.is_complete else "; there may be other conditions"
            return "equal if " + " or ".join(", ".join(c) for c in self.conditions) + self._speed + others
        if self.outcome == RESTRICTED:
            return f"proved where {', '.join(self.domain)}{self._speed}; only one side is defined elsewhere"
        where = f" where {', '.join(self.domain)}" if self.domain else ""
        note = f"; {self.reason}" if self.reason else ""
        return self.outcome + where + self._speed + note + (f" ({self.witness})" if self.witness else "")

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
        coincidences = coincidence(difference, self.rules)
        if any(not a.texts for a in coincidences.admissible):
            return self._proved()
        witness = find_witness(self.first, self.second, self.rules, self._hints(difference))
        if coincidences.admissible:
            return self._conditional(coincidences, witness)
        if witness is None:
            return Equivalence(Status.UNDECIDED, reason=_excluded(coincidences), is_complete=coincidences.is_complete)
        return Equivalence(
            REFUTED, witness=witness, reason=_excluded(coincidences), is_complete=coincidences.is_complete
        )

    def _is_zero(self, difference: sp.Expr) -> bool:
        return is_zero(difference, self.rules.algebra, self.rules.domain)

    def _proved(self, time_factor: str = "") -> Equivalence:
        """Equal where both are defined; plainly proved only where that is the same set."""
        algebra, domain = self.rules.algebra, self.rules.domain
        left, right = (needed_for_a_value(x, algebra, domain) for x in (self.first, self.second))
        status = PROVED if are_the_same(left, right, domain) else RESTRICTED
        chosen = left if status == PROVED else tuple(dict.fromkeys((*left, *right)))
        return Equivalence(status, domain=tuple(map(in_words, chosen)), time_factor=time_factor)

    def _conditional(self, coincidences: Coincidence, witness: Witness | None, time_factor: str = "") -> Equivalence:
        texts = tuple(a.texts for a in coincidences.admissible)
        return Equivalence(
            CONDITIONAL, texts, witness=witness, is_complete=coincidences.is_complete, time_factor=time_factor
        )

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
        if plain.outcome == CONDITIONAL:
            return replace(plain, time_factor="1", is_complete=False)
        return self._refuted_at_any_speed()

    def _factors(self) -> list[sp.Expr]:
        """Candidates: the ratio of the coefficients of one core, if it is one number."""
        letters = [
            x for n, x in self.rules.algebra.symbols.items() if self.rules.vocabulary.kinds.get(n) is Kind.SCALAR
        ]
        speed = sp.Dummy("speed", positive=True)
        form = canonical(self.left - speed * self.right, self.rules.algebra, self.rules.domain)
        factors: set[sp.Expr] = set()
        for coefficient in form.collected([*letters, speed]).values():
            slope = coefficient.coeff(speed)
            if slope != 0:
                factors.add(sp.cancel(-(coefficient - slope * speed) / slope))
        usable = (f for f in factors if f != 0 and f.free_symbols <= set(letters))
        return sorted(usable, key=lambda f: (f.count_ops(), str(f)))

    def _conditional_at(self, factor: sp.Expr, difference: sp.Expr) -> Equivalence | None:
        """Conditions under which the systems run through the same paths at this speed."""
        if self.rules.domain.where(_is_positive(factor)).is_empty():
            return None
        coincidences = coincidence(difference, self.rules)
        admissible = tuple(a for a in coincidences.admissible if self._leaves_speed(a, factor))
        if not admissible:
            return None
        return self._conditional(
            replace(coincidences, admissible=admissible, is_complete=False), None, str(public(factor))
        )

    def _leaves_speed(self, alternative: Alternative, factor: sp.Expr) -> bool:
        """Whether the factor is positive under the conditions."""
        return self.rules.domain.where(*alternative.conditions).proves(_is_positive(factor)) is True

    def _refuted_at_any_speed(self) -> Equivalence:
        """One state whose images are not positive multiples of each other refutes every factor at once."""
        witness = find_witness(
            self.first, self.second, self.rules, self._hints(sp.expand(self.left - self.right)), apart=not_parallel
        )
        return Equivalence(REFUTED if witness else Status.UNDECIDED, witness=witness, is_complete=False)


def _is_positive(factor: sp.Expr) -> sp.Basic:
    """factor > 0 as a condition between polynomials, which is false where a denominator vanishes."""
    top, bottom = sp.fraction(sp.together(factor))
    return sp.Gt(sp.expand(top * bottom), 0, evaluate=False)


def _excluded(coincidences: Coincidence) -> str:
    """The conditions that would be needed, where they are all there are."""
    if not coincidences.is_complete:
        return ""
    return "; ".join(f"only at {', '.join(a.texts)}, which signs or kinds exclude" for a in coincidences.excluded)


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

"""Comparisons of two right-hand sides, and their verdict `Equivalence`: proved, under conditions, or refuted."""

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
from rdgraph.reals.budget import attempt
from rdgraph.reals.domain import Domain
from rdgraph.reals.judge import Possibility, always, possible
from rdgraph.systems.canonical.function_identities import CanonicalForm, canonical, freed, is_zero
from rdgraph.theory.equality.counterexample import Hint, Witness, find_witness
from rdgraph.theory.equality.exact_values import not_parallel
from rdgraph.theory.equality.hypotheses import Hypotheses
from rdgraph.vocabulary.functions import FUNCTIONS, REALS

# ---------------------------------------------------------------------- definedness


def needed_for_a_value(tree: sp.Basic, algebra: Algebra, domain: Domain) -> tuple[sp.Basic, ...]:
    """The conditions on coefficients and states for a tree to have a value, without those that the domain implies.

    >>> from rdgraph.systems.parser import parse
    >>> s = parse("sqrt(H) + H0/beta + H0/H")
    >>> [in_words(c) for c in needed_for_a_value(s.expression, s.algebra, s.domain)]
    ['H >= 0', 'H != 0']
    """
    needed = dict.fromkeys(_Needs(algebra)(unfolded(tree)))
    return tuple(c for c in needed if _follows(c, (), domain) is not True)


def are_the_same(first: Iterable[sp.Basic], second: Iterable[sp.Basic], domain: Domain) -> bool:
    """Whether two sets of conditions are proved to be equivalent on a domain."""
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
    """The conditions of a tree node, then those of its parts."""

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
# When two expressions are equal: conditions on coefficients, masks and matrices under which their difference vanishes.
#
# The difference is a fraction in independent generators, whose coefficients must vanish. Every answer is confirmed by
# substitution. Absolute values of coefficients are split into their two cases, masks into M = 0 and M = 1, and mixing
# matrices are tried as multiples of the identity.

#: The order of kinds, widest first: a coefficient of nodes or channels can be equal to a number, but not conversely.
_WIDTH = {Kind.NODE: 0, Kind.CHANNEL: 1, Kind.SCALAR: 2}
MAX_CASES = 16
SOLVE_SECONDS = 2.0


@dataclass(frozen=True)
class Alternative:
    """One set of conditions: values of coefficients, values of matrices (as multiples of I), inequalities."""

    values: tuple[tuple[sp.Symbol, sp.Expr], ...]
    matrices: tuple[tuple[str, sp.Expr], ...] = ()
    region: tuple[sp.Basic, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The conditions as texts: matrices, coefficients by name, inequalities."""
        matrices = [f"{name} = {_multiple_of_identity(value)}" for name, value in self.matrices]
        ordered = sorted(self.values, key=lambda pair: pair[0].name)
        return (*matrices, *(f"{x.name} = {public(v)}" for x, v in ordered), *map(in_words, self.region))

    @property
    def conditions(self) -> tuple[sp.Basic, ...]:
        return (*(sp.Eq(x, v, evaluate=False) for x, v in self.values), *self.region)


@dataclass(frozen=True)
class Coincidence:
    """Admissible alternatives, alternatives that signs or kinds exclude, and whether there are no others."""

    admissible: tuple[Alternative, ...]
    excluded: tuple[Alternative, ...]
    is_complete: bool


def coincidence(difference: sp.Expr, rules: Hypotheses) -> Coincidence:
    """The conditions under which a normal form vanishes, as far as they are found.

    They are complete if the generators are independent and free of coefficients, the equations are polynomial, and
    operators and matrices occur in a form that excludes others.
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
        """The cases of any mask, and of masks that are 0 or 1 in all nodes."""
        yield {}, difference
        for mask in self.algebra.masks:
            if difference.has(mask):
                for value in (sp.S.Zero, sp.S.One):
                    yield {mask: value}, difference.xreplace({mask: value})

    def _regions(self, difference: sp.Expr) -> Iterator[tuple[tuple[sp.Basic, ...], CanonicalForm]]:
        """Forms without absolute values of coefficients, each with the inequalities under which it is valid."""
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
        """Values of the unknowns for which the form vanishes, also by functions of unknowns that become equal."""
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
        """The unknown coefficients of an expression, widest kind first."""
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
            return []  # sympy rarely solves several transcendental equations, and never quickly
        try:
            solutions = attempt(SOLVE_SECONDS, sp.solve, system, list(back), dict=True)
        except (NotImplementedError, Undecided):
            self.is_complete = False
            return []
        real = [s for s in solutions if not any(sp.sympify(v).has(sp.I) for v in s.values())]
        self.is_complete = self.is_complete and all(_is_imaginary(s) for s in solutions if s not in real)
        return [{back[x]: sp.sympify(v).xreplace(back) for x, v in s.items()} for s in real]

    def _coinciding(self, bound: list[sp.Expr], letters: list[sp.Symbol]) -> Iterator[dict[sp.Symbol, sp.Expr]]:
        """Values of the unknowns for which two functions of them become equal, or one becomes constant."""
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
        """Whether an alternative is impossible: a number would have to vary, or signs or relations contradict it."""
        for x, v in (*candidate.values, *((sp.Symbol(n), v) for n, v in candidate.matrices)):
            kinds = {self.kinds.get(y.name, Kind.SCALAR) for y in v.free_symbols} - {Kind.SCALAR}
            if not kinds <= {self.kinds.get(x.name, Kind.SCALAR)} - {Kind.MATRIX}:
                return True
        return possible(*self.domain.conditions, *candidate.conditions).outcome is Possibility.IMPOSSIBLE

    def _confirmed(self, difference: sp.Expr, candidate: Alternative) -> bool:
        """Whether the difference is proved to vanish under the conditions of an alternative."""
        values = dict(candidate.values)
        replaced = difference.xreplace(values)
        if candidate.matrices:
            scale = {name: v.xreplace(values) for name, v in candidate.matrices}
            replaced = scaled_matrices(replaced, scale)
        conditions = [c.xreplace(values) for c in (*self.domain.conditions, *candidate.region)]
        open_conditions = tuple(c for c in conditions if c not in (sp.true, sp.false))
        return is_zero(sp.expand(replaced), self.algebra, Domain(open_conditions))

    def _widest(self, alternatives: list[Alternative]) -> tuple[Alternative, ...]:
        """The alternatives that are not special cases of others."""
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
        """Whether the only matrix is outside of functions and without channel coefficients, so a multiple of I."""
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
    """An expression with multiples of the identity for the named mixing matrices."""

    def replaced(atom: Mix) -> sp.Expr:
        rest = tuple(w for w in atom.word if w.name not in scales)
        factor = sp.Mul(*(scales[w.name] for w in atom.word if w.name in scales))
        return factor * (Mix(rest, atom.inner) if rest else atom.inner)

    return expression.replace(lambda e: isinstance(e, Mix), replaced)


def _is_imaginary(solution: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether some value is known not to be real for any coefficients; radicals may be real numbers in disguise."""
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
    """The verdict of a comparison, true only for "proved": both sides are defined on the same set and equal there.

    `domain` are the conditions under which the sides are defined, if any. Sides that are equal wherever both are
    defined, but not defined on the same set, are "proved where defined", which does not count as true. `conditions`
    lists alternative sets of equations and inequalities under which the systems are equal; `is_complete` says whether
    there are no others, and `witness` shows that they are needed. With `rescale_time`, `time_factor` is the speed of
    the first system in units of the second. `fields` pairs the fields of two systems of several fields.
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
        """Whether the systems are equal, possibly under conditions; False with a counter-example, None if undecided."""
        return None if self.outcome == Status.UNDECIDED else self.outcome != REFUTED

    @property
    def status(self) -> Status:
        """proved, also if the equality is refuted, or undecided."""
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

    # ------------------------------------------------------------------ at the same speed
    def answer(self) -> Equivalence:
        difference = sp.expand(self.left - self.right)
        if self._is_zero(difference):
            self.rules.note(self.first, self.second)
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
        """The verdict for sides that are equal where both are defined: proved if that is the same set."""
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
        """A point at which the sides differ if operators and matrices are arbitrary, if one is found."""
        form = canonical(difference, self.rules.algebra, self.rules.domain)
        ruling = possible(*freed((sp.Ne(form.numerator, 0, evaluate=False), *self.rules.domain.conditions)))
        point = ruling.point or {}
        return [{x.name: v for x, v in point.items() if v.is_Rational and not isinstance(x, sp.Dummy)}] if point else []

    # ------------------------------------------------------------------ at any speed
    def at_any_speed(self) -> Equivalence:
        """The verdict about left = factor * right with a positive factor, which may depend on scalar coefficients."""
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
        """Candidates for the factor: ratios of the coefficients of one core that are scalars."""
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
        """The verdict with conditions under which the systems have the same paths at this speed; None without any."""
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
        """Whether the factor is proved to be positive under the conditions."""
        return self.rules.domain.where(*alternative.conditions).proves(_is_positive(factor)) is True

    def _refuted_at_any_speed(self) -> Equivalence:
        """The verdict from a state whose images are not positive multiples of each other, which refutes all factors."""
        witness = find_witness(
            self.first, self.second, self.rules, self._hints(sp.expand(self.left - self.right)), apart=not_parallel
        )
        return Equivalence(REFUTED if witness else Status.UNDECIDED, witness=witness, is_complete=False)


def _is_positive(factor: sp.Expr) -> sp.Basic:
    """factor > 0 as a condition between polynomials, which is false where a denominator vanishes."""
    top, bottom = sp.fraction(sp.together(factor))
    return sp.Gt(sp.expand(top * bottom), 0, evaluate=False)


def _excluded(coincidences: Coincidence) -> str:
    """The excluded conditions as text, if there are no others."""
    if not coincidences.is_complete:
        return ""
    return "; ".join(f"only at {', '.join(a.texts)}, which signs or kinds exclude" for a in coincidences.excluded)


def make_rules(
    kinds: Sequence[Mapping[str, Kind]],
    assumptions: Sequence[Assumptions],
    given: tuple[str, ...],
    operators: tuple[tuple[str, tuple[str, ...]], ...] = (),
) -> Hypotheses:
    """The hypotheses of a comparison: the declarations and assumptions of both sides, and L = I - A."""
    one, other = kinds
    clash = [n for n in one if n in other and one[n] is not other[n]]
    if clash:
        both = f"{one[clash[0]]} and {other[clash[0]]}"
        raise InvalidArgument(f"expected {clash[0]} to be of one kind in both systems, got {both}")
    letters = {n: k for n, k in {**one, **other}.items() if n not in STRUCTURAL}
    declared = tuple(sorted((n, str(k)) for n, k in letters.items()))
    rules = Hypotheses(given, declared, assumptions[0].joined(assumptions[1]), operators)
    return rules if "L" in rules.definitions else replace(rules, texts=(LAPLACIAN, *given))

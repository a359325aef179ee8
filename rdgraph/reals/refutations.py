"""Proofs, for `rdgraph.check_certificate`, that polynomial facts contradict each other: cases, signs, sums of products.

A search: facts are split into cases until a linear program finds nonnegative multiples of their products whose sum is
the zero polynomial although one of them is positive. The program works in floating point; the multiples are then solved
for exactly, and what does not come out exactly is not a proof.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import flint
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_matrix

from rdgraph.check_certificate import Polynomial, constant, facts_of, plus, signed, times

Proof = dict[str, Any]

#: Products that one linear program may hold, and facts of one product.
MOST_PRODUCTS = 1500
MOST_FACTORS = 3
#: Linear programs of one search, and cases within cases.
MOST_PROGRAMS = 200
MOST_DEPTH = 24


@dataclass
class Search:
    """What is left of the effort for one proof."""

    programs: int = MOST_PROGRAMS
    letters: tuple[str, ...] = ()
    _factors: dict[Any, list[tuple[Polynomial, int]]] = field(default_factory=dict)

    def factors(self, polynomial: Polynomial) -> list[tuple[Polynomial, int]]:
        """The irreducible factors and how often each occurs, without the number in front."""
        key = tuple(sorted(polynomial.items()))
        if key not in self._factors:
            self._factors[key] = _factors(polynomial)
        return self._factors[key]


def refuted(assertions: Sequence[Any], letters: set[str], programs: int = MOST_PROGRAMS) -> Proof | None:
    """A proof that no real numbers satisfy the assertions of a `check_certificate.Problem`; None where none was found.

    Args:
        assertions: formulas as `Problem` reads them.
        letters: the letters in them.
        programs: the most linear programs that are solved.

    >>> from rdgraph.check_certificate import Problem
    >>> problem = Problem("(declare-const x Real) (assert (< (* x x) 0.0))")
    >>> refuted(problem.assertions, problem.letters)
    {'sum': [['1', [0]], [[['1', 'x']], []]]}
    """
    facts = [fact for formula in assertions for fact in facts_of(formula, letters)]
    return _refuted(facts, Search(programs, tuple(sorted(letters))), 0)


def _refuted(facts: list[Any], search: Search, depth: int) -> Proof | None:
    plain = [(k, fact[1], fact[2]) for k, fact in enumerate(facts) if fact[0] == "fact"]
    if (proof := _summed(plain, search, 1)) is not None:
        return proof
    if depth >= MOST_DEPTH or search.programs <= 0:
        return None
    if (proof := _by_choice(facts, search, depth)) is not None:
        return proof
    if any(fact[0] == "or" and not _is_settled(facts, k) for k, fact in enumerate(facts)):
        return None
    for size in range(2, MOST_FACTORS + 1):
        if (proof := _summed(plain, search, size)) is not None:
            return proof
    return _by_sign(facts, search, depth)


def _is_settled(facts: list[Any], index: int) -> bool:
    """Whether one of the alternatives was taken up already: its facts are among the facts."""
    return any(all(part in facts for part in alternative) for alternative in facts[index][1])


def _by_choice(facts: list[Any], search: Search, depth: int) -> Proof | None:
    """Cases by the disjunction with the fewest alternatives that do not close at once."""
    best: tuple[int, int, list[Proof | None]] | None = None
    for index, fact in enumerate(facts):
        if fact[0] != "or" or _is_settled(facts, index):
            continue
        closed: list[Proof | None] = []
        for alternative in fact[1]:
            more = facts + alternative
            closed.append(_summed([(k, f[1], f[2]) for k, f in enumerate(more) if f[0] == "fact"], search, 1))
        still_open = closed.count(None)
        if best is None or still_open < best[0]:
            best = (still_open, index, closed)
        if still_open <= 1:
            break
    if best is None:
        return None
    _, index, closed = best
    for k, alternative in enumerate(facts[index][1]):
        if closed[k] is None:
            closed[k] = _refuted(facts + alternative, search, depth + 1)
            if closed[k] is None:
                return None
    return {"or": index, "cases": closed}


def _by_sign(facts: list[Any], search: Search, depth: int) -> Proof | None:
    """Cases by the sign of a factor or a letter that no fact tells."""
    known = [fact[1] for fact in facts if fact[0] == "fact" and fact[2] != "!="]
    for polynomial in _candidates(facts, search):
        negative = plus({}, polynomial, -1)
        if any(_is_multiple(polynomial, other) or _is_multiple(negative, other) for other in known):
            continue
        cases = []
        for relation in ("<", "=", ">"):
            proof = _refuted([*facts, signed(polynomial, relation)], search, depth + 4)
            if proof is None:
                break
            cases.append(proof)
        else:
            return {"sign": text(polynomial), "cases": cases}
        if search.programs <= 0:
            return None
    return None


def _candidates(facts: list[Any], search: Search) -> Iterator[Polynomial]:
    seen: list[Polynomial] = []
    for fact in facts:
        if fact[0] != "fact":
            continue
        factors = search.factors(fact[1])
        if len(factors) > 1 or any(count > 1 for _, count in factors) or fact[2] == "!=":
            seen += [factor for factor, _ in factors if factor not in seen]
    yield from sorted(seen, key=len)
    for letter in search.letters:
        polynomial: Polynomial = {((letter, 1),): Fraction(1)}
        if polynomial not in seen and any(_holds_letter(fact, letter) for fact in facts if fact[0] == "fact"):
            yield polynomial


def _holds_letter(fact: Any, letter: str) -> bool:
    return any(letter == name for monomial in fact[1] for name, _ in monomial)


def _is_multiple(first: Polynomial, second: Polynomial) -> bool:
    """Whether second is a positive multiple of first."""
    if not first or first.keys() != second.keys():
        return False
    some = next(iter(first))
    factor = second[some] / first[some]
    return factor > 0 and all(second[monomial] == factor * number for monomial, number in first.items())


# ---------------------------------------------------------------- sums of products


def _summed(facts: list[tuple[int, Polynomial, str]], search: Search, size: int) -> Proof | None:
    """Products of at most `size` facts that add up to zero, as a proof."""
    if search.programs <= 0:
        return None
    search.programs -= 1
    reduced, multiples = _reductions(facts) if size > 1 else ([], [])
    products = _products(facts, search, size, reduced)
    zeros = _zeros(facts, products, size)
    have = {(factor, index) for factor, index, _ in zeros}
    zeros += [zero for zero in multiples if zero[:2] not in have]
    rows: dict[Any, int] = {}
    columns = [[(rows.setdefault(m, len(rows)), n) for m, n in p.items()] for _, _, _, p in products]
    columns += [[(rows.setdefault(m, len(rows)), n) for m, n in p.items()] for _, _, p in zeros]
    support = _multiples(columns, [strict for _, _, strict, _ in products], len(rows))
    if support is None:
        return None
    proof: Proof = {"sum": []}
    equal = []
    for index, number in support.items():
        if index < len(products):
            square, indices, _, _ = products[index]
            multiplier: Any = str(number) if square is None else [[str(number), square]]
            proof["sum"].append([multiplier, indices])
        else:
            factor, fact, _ = zeros[index - len(products)]
            equal.append([text({factor: number}), fact])
    if equal:
        proof["zero"] = equal
    return proof


def _products(
    facts: list[tuple[int, Polynomial, str]], search: Search, size: int, reduced: list[Polynomial]
) -> list[tuple[str | None, list[int], bool, Polynomial]]:
    """(square, numbers of facts, whether positive, polynomial)"""
    single: list[tuple[str | None, list[int], bool, Polynomial]] = [(None, [], True, constant(1))]
    for index, polynomial, relation in facts:
        if relation == "!=":
            single.append((None, [index, index], True, times(polynomial, polynomial)))
        elif relation != "=":
            single.append((None, [index], relation == ">", polynomial))
    found = list(single)
    if size >= 2:
        bases = [one for one in single[1:] if len(one[1]) == 1]
        for count in range(2, size + 1):
            if len(found) > MOST_PRODUCTS:
                break
            for chosen in itertools.combinations_with_replacement(bases, count):
                product = chosen[0][3]
                for other in chosen[1:]:
                    product = times(product, other[3])
                found.append((None, [k for one in chosen for k in one[1]], all(one[2] for one in chosen), product))
                if len(found) > MOST_PRODUCTS:
                    break
    found += _by_factors(facts, single, search)
    found += _by_monomials([p for _, p, _ in facts] + reduced, single)
    squares = list(_squares(search, size))
    if size > 1:
        squares += [(text(root), times(root, root)) for root in _double_roots(facts, search)]
    multiplied = found[: 6 * MOST_PRODUCTS // (len(squares) + 1)] if size > 2 else single if size > 1 else single[:1]
    for square, value in squares:
        found += [(square, one[1], False, times(value, one[3])) for one in multiplied]
    return found


def _by_factors(facts: list[tuple[int, Polynomial, str]], single: list[Any], search: Search) -> Iterator[Any]:
    """For each fact, its factors by the facts that tell their signs; even powers of factors are squares."""
    for _, polynomial, _ in facts:
        factors = search.factors(polynomial)
        square, indices, strict, product = constant(1), [], True, constant(1)
        for factor, times_ in factors:
            for _ in range(times_ // 2):
                square = times(square, factor)
            if times_ % 2:
                negative = plus({}, factor, -1)
                signs = (one for one in single if _is_multiple(factor, one[3]) or _is_multiple(negative, one[3]))
                sign = next(signs, None)
                if sign is None:
                    break
                indices += sign[1]
                strict = strict and sign[2]
                product = times(product, sign[3])
        else:
            if len(factors) > 1 and square == constant(1):
                yield (None, indices, strict, product)
            elif square != constant(1):
                yield (text(square), indices, False, times(times(square, square), product))


def _double_roots(facts: list[tuple[int, Polynomial, str]], search: Search) -> list[Polynomial]:
    """Factors that occur twice once a letter is eliminated from two facts: one touches the border of the other."""
    found: list[Polynomial] = []
    plain = [p for _, p, relation in facts if relation != "="][:12]
    rests: list[Polynomial] = []
    for one, two in itertools.combinations(plain, 2):
        rests += _eliminated(one, two, search)
    for one, two in itertools.product(rests[:12], plain):
        rests += _eliminated(one, two, search)
    for rest in rests:
        found += [f for f, count in search.factors(rest) if count > 1 and f not in found and len(f) > 1]
    return found[:20]


def _eliminated(one: Polynomial, two: Polynomial, search: Search) -> Iterator[Polynomial]:
    """What follows from two equations once a letter that is linear in both is eliminated."""
    for letter in search.letters:
        if _linear(one, letter) and _linear(two, letter):
            (a, b), (c, d) = _parts(one, letter), _parts(two, letter)
            rest = plus(times(a, d), times(b, c), -1)
            if len(rest) > 1:
                yield rest


def _linear(polynomial: Polynomial, letter: str) -> bool:
    powers = [dict(monomial).get(letter, 0) for monomial in polynomial]
    return max(powers, default=0) == 1


def _parts(polynomial: Polynomial, letter: str) -> tuple[Polynomial, Polynomial]:
    """The polynomials in front of the letter, and without it."""
    with_it = {tuple(f for f in m if f[0] != letter): n for m, n in polynomial.items() if (letter, 1) in m}
    return with_it, {m: n for m, n in polynomial.items() if (letter, 1) not in m}


def _by_monomials(polynomials: list[Polynomial], single: list[Any]) -> Iterator[Any]:
    """Each monomial of the polynomials as a product of facts about its letters."""
    signs: dict[str, Any] = {}
    for one in single[1:]:
        if len(one[3]) == 1 and len(one[1]) == 1:
            [(monomial, _)] = one[3].items()
            if degree(monomial) == 1:
                signs.setdefault(monomial[0][0], one)
    for monomial in {monomial: None for polynomial in polynomials for monomial in polynomial}:
        square, indices, strict, product = constant(1), [], True, constant(1)
        for letter, power in monomial:
            one = signs.get(letter)
            if one is not None:
                indices += one[1] * power
                strict = strict and one[2]
                for _ in range(power):
                    product = times(product, one[3])
            elif power % 2 == 0:
                square = times(square, {((letter, power // 2),): Fraction(1)})
            else:
                break
        else:
            if len(indices) > 1 or square != constant(1):
                plain = square == constant(1)
                yield (
                    None if plain else text(square),
                    indices,
                    strict and plain,
                    times(times(square, square), product),
                )


def _reductions(facts: list[tuple[int, Polynomial, str]]) -> tuple[list[Polynomial], list[tuple[Any, int, Polynomial]]]:
    """The facts rewritten by equations, and the multiples of equations that this takes."""
    equal = [(index, polynomial) for index, polynomial, relation in facts if relation == "="]
    leading = [[m for m in polynomial if m] for _, polynomial in equal]
    found: list[Polynomial] = []
    used: dict[Any, tuple[Any, int, Polynomial]] = {}
    for choice in itertools.islice(itertools.product(*leading), 24):
        for _, polynomial, relation in facts:
            if relation == "=":
                continue
            value = polynomial
            for _ in range(40):
                step = next(
                    (
                        (m, k, rest)
                        for m in value
                        for k, lead in enumerate(choice)
                        if (rest := _over(m, lead)) is not None
                    ),
                    None,
                )
                if step is None:
                    break
                monomial, k, rest = step
                multiple = times({rest: Fraction(1)}, equal[k][1])
                used[rest, equal[k][0]] = (rest, equal[k][0], multiple)
                value = plus(value, multiple, -value[monomial] / equal[k][1][choice[k]])
            if value != polynomial:
                found.append(value)
    return found, list(used.values())


def _over(monomial: Any, divisor: Any) -> Any:
    """The quotient of two monomials, or None."""
    powers = dict(monomial)
    for letter, power in divisor:
        powers[letter] = powers.get(letter, 0) - power
        if powers[letter] < 0:
            return None
    return tuple(sorted((letter, power) for letter, power in powers.items() if power))


def _squares(search: Search, size: int) -> Iterator[tuple[str, Polynomial]]:
    letters: list[Polynomial] = [{((name, 1),): Fraction(1)} for name in search.letters]
    roots = list(letters)
    if size >= 2:
        for one, two in itertools.combinations(letters, 2):
            roots += [plus(one, two), plus(one, two, -1)]
        roots += [plus(one, constant(1), sign) for one in letters for sign in (1, -1)]
    if size >= 3 and len(letters) <= 4:
        roots += [times(one, two) for one, two in itertools.combinations_with_replacement(letters, 2)]
    for root in roots:
        yield text(root), times(root, root)


def _zeros(
    facts: list[tuple[int, Polynomial, str]], products: list[Any], size: int
) -> list[tuple[Any, int, Polynomial]]:
    """(monomial, number of the fact, polynomial) for every fact that says = 0, times monomials that occur."""
    found = []
    equal = [(index, polynomial) for index, polynomial, relation in facts if relation == "="]
    if not equal:
        return []
    monomials: dict[Any, None] = {(): None}
    for _, _, _, polynomial in products:
        monomials.update(dict.fromkeys(polynomial))
    highest = max((degree(m) for m in monomials), default=0)
    for index, polynomial in equal:
        own = max(map(degree, polynomial), default=0)
        fitting = [m for m in list(monomials)[: 60 * size] if degree(m) + own <= max(highest, own) + (size > 2)]
        found += [(m, index, times({m: Fraction(1)}, polynomial)) for m in fitting]
    return found


def degree(monomial: Any) -> int:
    return sum(power for _, power in monomial)


def _multiples(
    columns: list[list[tuple[int, Fraction]]], strict: list[bool], height: int
) -> dict[int, Fraction] | None:
    """Numbers for the columns whose sum is zero: >= 0 for products, not all strict ones 0, free for equations."""
    count = len(strict)
    data, where, starts, scales = [], [], [0], []
    for index, column in enumerate(columns):
        scale = max((abs(float(number)) for _, number in column), default=1.0) or 1.0
        scales.append(scale)
        for row, number in column:
            data.append(float(number) / scale)
            where.append(row)
        if index < count and strict[index]:
            data.append(1.0)
            where.append(height)
        starts.append(len(data))
    if not np.isfinite(data).all():
        return None
    matrix = csc_matrix((data, where, starts), shape=(height + 1, len(columns)))
    right = np.zeros(height + 1)
    right[height] = 1.0
    bounds = [(0, None)] * count + [(None, None)] * (len(columns) - count)
    cost = np.concatenate([np.ones(count), np.zeros(len(columns) - count)])
    solved = linprog(cost, A_eq=matrix, b_eq=right, bounds=bounds, method="highs-ds")
    if solved.status != 0:
        return None
    support = [index for index, number in enumerate(solved.x) if abs(number) > 1e-9]
    return _exactly(columns, strict, height, support)


def _exactly(
    columns: list[list[tuple[int, Fraction]]], strict: list[bool], height: int, support: list[int]
) -> dict[int, Fraction] | None:
    """The solution on the support, in fractions; None where it is not one with the right signs."""
    if not support:
        return None
    table = [[flint.fmpq(0)] * (len(support) + 1) for _ in range(height + 1)]
    for place, index in enumerate(support):
        for row, number in columns[index]:
            table[row][place] = flint.fmpq(number.numerator, number.denominator)
        if index < len(strict) and strict[index]:
            table[height][place] = flint.fmpq(1)
    table[height][len(support)] = flint.fmpq(1)
    reduced, rank = flint.fmpq_mat(table).rref()
    values = [flint.fmpq(0)] * len(support)
    for row in range(rank):
        pivot = next(k for k in range(len(support) + 1) if reduced[row, k] != 0)
        if pivot == len(support):
            return None
        values[pivot] = reduced[row, len(support)]
    exact = {index: Fraction(int(v.p), int(v.q)) for index, v in zip(support, values, strict=True) if v != 0}
    if any(number < 0 for index, number in exact.items() if index < len(strict)):
        return None
    return exact if any(strict[index] for index in exact if index < len(strict)) else None


# ---------------------------------------------------------------- text and factors


def text(polynomial: Polynomial) -> str:
    """A polynomial as an SMT-LIB term.

    >>> text({(("x", 2),): Fraction(-1, 2), (): Fraction(3)})
    '(+ (* (- (/ 1 2)) x x) 3)'
    """
    parts = []
    for monomial, number in polynomial.items():
        letters = [name for name, power in monomial for _ in range(power)]
        sign = number < 0
        size = abs(number)
        written = str(size.numerator) if size.denominator == 1 else f"(/ {size.numerator} {size.denominator})"
        written = f"(- {written})" if sign else written
        if letters and number == 1:
            parts.append(letters[0] if len(letters) == 1 else f"(* {' '.join(letters)})")
        else:
            parts.append(f"(* {written} {' '.join(letters)})" if letters else written)
    return "0" if not parts else parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


@cache
def _context(names: tuple[str, ...]) -> Any:
    return flint.fmpq_mpoly_ctx.get(names, flint.Ordering.lex)


def _factors(polynomial: Polynomial) -> list[tuple[Polynomial, int]]:
    names = tuple(sorted({name for monomial in polynomial for name, _ in monomial}))
    if not names:
        return []
    context = _context(tuple(f"x{k}" for k in range(len(names))))
    terms = {}
    for monomial, number in polynomial.items():
        powers = dict(monomial)
        terms[tuple(powers.get(name, 0) for name in names)] = flint.fmpq(number.numerator, number.denominator)
    _, factors = context.from_dict(terms).factor()
    found = []
    for factor, count in factors:
        converted: Polynomial = {}
        for powers, number in factor.to_dict().items():
            monomial = tuple((name, int(power)) for name, power in zip(names, powers, strict=True) if power)
            converted[monomial] = Fraction(int(number.p), int(number.q))
        found.append((converted, int(count)))
    return found

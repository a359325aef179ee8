"""`rdgraph-check FILE`: checks a certificate of rdgraph without a solver, by exact fractions and the standard library.

This file imports nothing of rdgraph and can be copied by itself: `python check_certificate.py FILE`.

A certificate is JSON: a statement in words, the steps that made obligations of it, and the obligations. An obligation
is an SMT-LIB text (the quantifier-free part over the reals that rdgraph writes) with one of two claims:

unsat: no real numbers satisfy all assertions. The proof is a tree that follows one branch for every case:
    {"or": k, "cases": [proof, ...]}      the k-th fact is a disjunction; one proof for each alternative
    {"sign": p, "cases": [-, 0, +]}       a polynomial is negative, zero or positive; one proof for each case
    {"sum": [[squares, facts], ...], "zero": [[p, k], ...]}
                                          facts that contradict each other: see `check_sum`
sat: the rational numbers of the model satisfy all assertions.

An obligation with the claim "identity" has two terms of the language instead, which `check_identity` expands.

What is checked is that each obligation holds as written. How the statement became these obligations is listed in the
certificate and is not checked: the output says "translation not checked".
"""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

FORMAT = "rdgraph-certificate-1"

Polynomial = dict[tuple[tuple[str, int], ...], Fraction]
Quotient = tuple[Polynomial, dict[Any, int]]
Fact = tuple[Any, ...]
#: What JSON of another shape raises.
MALFORMED = (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, AttributeError, RecursionError)


class Rejected(Exception):
    """What is wrong with a certificate, in one sentence."""


def expect(condition: object, message: str) -> None:
    if not condition:
        raise Rejected(message)


# ---------------------------------------------------------------- polynomials: {((letter, power), ...): fraction}
def constant(number: Fraction | int) -> Polynomial:
    return {(): Fraction(number)} if number else {}


def plus(first: Polynomial, second: Polynomial, factor: Fraction | int = 1) -> Polynomial:
    """first + factor*second."""
    total = dict(first)
    for monomial, number in second.items():
        total[monomial] = total.get(monomial, 0) + factor * number
        if not total[monomial]:
            del total[monomial]
    return total


def times(first: Polynomial, second: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for one, a in first.items():
        for two, b in second.items():
            powers = dict(one)
            for letter, power in two:
                powers[letter] = powers.get(letter, 0) + power
            monomial = tuple(sorted(powers.items()))
            total[monomial] = total.get(monomial, 0) + a * b
            if not total[monomial]:
                del total[monomial]
    return total


# ---------------------------------------------------------------- SMT-LIB: nested lists of words, lets put in
def read(text: str) -> list[Any]:
    """The commands of an SMT-LIB text as nested lists."""
    stack: list[list[Any]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text)):
        if token == "(":
            stack.append([])
        elif token == ")":
            expect(len(stack) > 1, "a bracket closes that was not opened")
            closed = stack.pop()
            stack[-1].append(closed)
        else:
            stack[-1].append(token)
    expect(len(stack) == 1, "a bracket is not closed")
    return stack[0]


def without_let(term: Any, values: dict[str, Any]) -> Any:
    """The term with the words of enclosing lets replaced."""
    if isinstance(term, str):
        return values.get(term, term)
    if term and term[0] == "let":
        expect(len(term) == 3, "a let needs bindings and a body")
        return without_let(term[2], {**values, **{name: without_let(value, values) for name, value in term[1]}})
    return [without_let(part, values) for part in term]


class Problem:
    """The letters of an SMT-LIB text, and its assertions as formulas."""

    def __init__(self, text: str) -> None:
        self.letters: set[str] = set()
        self.assertions: list[Any] = []
        for command in read(text):
            expect(isinstance(command, list) and command, f"a command is a list, got {command}")
            match command:
                case ["declare-const", str(name), "Real"]:
                    expect(name not in self.letters, f"the letter {name} is declared twice")
                    expect(re.fullmatch(r"[A-Za-z_][\w!]*", name), f"{name} is no name of a letter")
                    self.letters.add(name)
                case ["assert", formula]:
                    self.assertions.append(without_let(formula, {}))
                case ["set-logic", "QF_NRA"] | ["set-info", ":status", _] | ["check-sat"]:
                    pass
                case _:
                    raise Rejected(f"an unknown command: {command[0]}")


def number_of(word: str) -> Fraction | None:
    """The number that a word writes, or None."""
    return Fraction(word) if re.fullmatch(r"\d+(\.\d+)?", word) else None


# ---------------------------------------------------------------- formulas: facts and disjunctions of facts
# A fact is ("fact", polynomial, relation) with a relation of > >= = != to zero, or ("or", [alternative, ...]), where an
# alternative is a list of facts that hold together.

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}
MIRRORED = {">": "<", ">=": "<=", "=": "=", "!=": "!=", "<": ">", "<=": ">="}


def is_boolean(term: Any) -> bool:
    words = {"true", "false", "and", "or", "not", "=>", "=", "distinct", "<", "<=", ">", ">="}
    if isinstance(term, str):
        return term in ("true", "false")
    return bool(term) and (term[0] in words or (term[0] == "ite" and is_boolean(term[2])))


def facts_of(formula: Any, letters: set[str], holds: bool = True) -> list[Fact]:
    """The facts, together as strong as the formula (or its negation), as a list."""
    if formula in ("true", "false"):
        return [] if (formula == "true") == holds else [("fact", {}, ">")]
    expect(isinstance(formula, list) and formula, f"no formula: {formula}")
    word, parts = formula[0], formula[1:]
    if word == "not":
        return facts_of(parts[0], letters, not holds)
    if word == "=>":
        expect(len(parts) == 2, "=> takes two formulas")
        return facts_of(["or", ["not", parts[0]], parts[1]], letters, holds)
    if word in ("and", "or"):
        if (word == "and") == holds:
            return [fact for part in parts for fact in facts_of(part, letters, holds)]
        return [("or", [facts_of(part, letters, holds) for part in parts])]
    if word == "ite" and is_boolean(formula):
        return either(parts[0], parts[1], parts[2], letters, holds)
    expect(word in ("<", "<=", ">", ">=", "=", "distinct"), f"an unknown word in a formula: {word}")
    expect(len(parts) == 2 and not any(map(is_boolean, parts)), f"{word} compares two terms")
    choice = first_choice(parts)
    if choice is not None:
        yes, no = ([word, *(put(part, choice, value) for part in parts)] for value in choice[2:])
        return either(choice[1], yes, no, letters, holds)
    relation = "!=" if word == "distinct" else word
    return compared(parts[0], parts[1], relation if holds else OPPOSITE[relation], letters)


def either(test: Any, yes: Any, no: Any, letters: set[str], holds: bool) -> list[Fact]:
    first = facts_of(test, letters) + facts_of(yes, letters, holds)
    return [("or", [first, facts_of(test, letters, False) + facts_of(no, letters, holds)])]


def first_choice(term: Any) -> Any:
    """The first ite in a term that is not inside another one, or None."""
    if isinstance(term, str):
        return None
    if term and term[0] == "ite":
        expect(len(term) == 4, "ite takes three parts")
        return term
    return next((found for part in term if (found := first_choice(part)) is not None), None)


def put(term: Any, choice: Any, value: Any) -> Any:
    if term == choice:
        return value
    return term if isinstance(term, str) else [put(part, choice, value) for part in term]


def compared(left: Any, right: Any, relation: str, letters: set[str]) -> list[Fact]:
    """left (relation) right as facts; nothing is learned where a denominator is 0: the division may have any value."""
    top, bottom = quotient(["-", left, right], letters)
    product, odd, nonzero = constant(1), constant(1), []
    for factor, power in bottom.items():
        product = times(product, dict(factor))
        if power % 2:
            odd = times(odd, dict(factor))
        else:
            nonzero.append(("fact", dict(factor), "!="))
    if not bottom:
        return [signed(top, relation)]
    if relation in ("=", "!="):
        return [("or", [[("fact", product, "!="), signed(top, relation)], [("fact", product, "=")]])]
    if odd == constant(1):
        return [("or", [[*nonzero, signed(top, relation)], [("fact", product, "=")]])]
    positive = [("fact", odd, ">"), *nonzero, signed(top, relation)]
    negative = [signed(odd, "<"), *nonzero, signed(top, MIRRORED[relation])]
    return [("or", [positive, negative, [("fact", product, "=")]])]


def signed(polynomial: Polynomial, relation: str) -> Fact:
    """A fact with one of the relations > >= = !=."""
    if relation in ("<", "<="):
        return ("fact", plus({}, polynomial, -1), MIRRORED[relation])
    return ("fact", polynomial, relation)


def quotient(term: Any, letters: set[str]) -> Quotient:
    """Numerator of a term without ite, and {factor: power} of its denominator, with every denominator that was met."""
    if isinstance(letters, Language) and term[0] in ("act", "mix", "call"):
        return letters.value(*term)
    if isinstance(term, str):
        value = number_of(term)
        expect(value is not None or term in letters, f"an unknown letter: {term}")
        return (constant(value) if value is not None else {((term, 1),): Fraction(1)}), {}
    expect(len(term) >= 2 and term[0] in ("+", "-", "*", "/"), f"no term: {term}")
    return combined(term[0], [quotient(part, letters) for part in term[1:]])


def combined(word: str, parts: list[Quotient]) -> Quotient:
    """The sum, difference, product or quotient of the parts."""
    top, bottom = parts[0]
    if word == "-" and len(parts) == 1:
        return plus({}, top, -1), bottom
    for above, below in parts[1:]:
        powers = {factor: max(bottom.get(factor, 0), below.get(factor, 0)) for factor in {**bottom, **below}}
        if word in "+-":
            first, second = extended(top, bottom, powers), extended(above, below, powers)
            top, bottom = plus(first, second, 1 if word == "+" else -1), powers
            continue
        if word == "/":  # the denominators of the divisor stay denominators: top*below^2 / (above*below)
            number, factors = divisors(above)
            above = extended(constant(1 / number), {}, {factor: 2 * power for factor, power in below.items()})
            below = {factor: factors.get(factor, 0) + below.get(factor, 0) for factor in {**factors, **below}}
        top = times(top, above)
        bottom = {factor: bottom.get(factor, 0) + below.get(factor, 0) for factor in {**bottom, **below}}
    return top, bottom


def divisors(polynomial: Polynomial) -> tuple[Fraction, dict[Any, int]]:
    """A number and {factor: power} whose product is the polynomial; each letter of a monomial is a factor."""
    expect(polynomial, "a division by zero")
    if len(polynomial) > 1:
        return Fraction(1), {tuple(sorted(polynomial.items())): 1}
    [(monomial, number)] = polynomial.items()
    return number, {((((letter, 1),), Fraction(1)),): power for letter, power in monomial}


def extended(top: Polynomial, bottom: dict[Any, int], powers: dict[Any, int]) -> Polynomial:
    """The numerator over the denominator with these powers, which are at least those of `bottom`."""
    for factor, power in powers.items():
        for _ in range(power - bottom.get(factor, 0)):
            top = times(top, dict(factor))
    return top


def polynomial(term: str, letters: set[str]) -> Polynomial:
    """The polynomial that a proof writes as a term."""
    top, bottom = quotient(without_let(read(term)[0], {}), letters)
    expect(not bottom, "a polynomial has no denominator")
    return top


# ---------------------------------------------------------------- proofs that nothing satisfies the facts
def check_tree(proof: Any, facts: list[Fact], letters: set[str], depth: int = 0) -> None:
    """Raises Rejected unless the proof shows that the facts cannot hold together."""
    expect(isinstance(proof, dict) and depth < 400, "no proof")
    if "or" in proof:
        index = proof["or"]
        is_number = isinstance(index, int) and 0 <= index < len(facts)
        expect(is_number and facts[index][0] == "or", f"fact {index} is no choice")
        alternatives = facts[index][1]
        expect(len(proof["cases"]) == len(alternatives), "a choice needs a proof for each of its cases")
        for case, alternative in zip(proof["cases"], alternatives, strict=True):
            check_tree(case, facts + alternative, letters, depth + 1)
    elif "sign" in proof:
        split = polynomial(proof["sign"], letters)
        expect(len(proof["cases"]) == 3, "a sign needs three proofs")
        for case, relation in zip(proof["cases"], ("<", "=", ">"), strict=True):
            check_tree(case, [*facts, signed(split, relation)], letters, depth + 1)
    else:
        check_sum(proof, facts, letters)


def check_sum(proof: Any, facts: list[Fact], letters: set[str]) -> None:
    """Facts that contradict each other: a sum of products that is 0 as a polynomial and positive by the facts.

    Each entry of "sum" is a product of facts (their numbers), all of them > 0 or >= 0, times squares: a list of
    [number > 0, polynomial], or one positive number. "!=" facts occur an even number of times. Each entry of "zero" is
    a polynomial times a fact that says = 0. At least one product has a number for squares and strict facts alone.
    """
    total: Polynomial = {}
    is_strict = False
    for squares, indices in proof["sum"]:
        product, strict = constant(1), True
        unequal: dict[int, int] = {}
        for index in indices:
            value, relation = fact_at(facts, index)
            expect(relation in (">", ">=", "!="), f"fact {index} says = 0 and stands in a product")
            strict = strict and relation != ">="
            if relation == "!=":
                unequal[index] = unequal.get(index, 0) + 1
            product = times(product, value)
        expect(not any(count % 2 for count in unequal.values()), "a fact != 0 occurs an odd number of times")
        if isinstance(squares, list):
            multiplier: Polynomial = {}
            strict = False
            for number, root in squares:
                expect(Fraction(number) > 0, "a square has a number that is not positive")
                value = polynomial(root, letters)
                multiplier = plus(multiplier, times(value, value), Fraction(number))
        else:
            expect(Fraction(squares) > 0, "a product has a number that is not positive")
            multiplier = constant(Fraction(squares))
        is_strict = is_strict or strict
        total = plus(total, times(multiplier, product))
    for factor, index in proof.get("zero", []):
        value, relation = fact_at(facts, index)
        expect(relation == "=", f"fact {index} does not say = 0")
        total = plus(total, times(polynomial(factor, letters), value))
    expect(is_strict, "no product of the sum is positive")
    expect(not total, "the sum is not the zero polynomial")


def fact_at(facts: list[Fact], index: Any) -> tuple[Polynomial, str]:
    is_number = isinstance(index, int) and 0 <= index < len(facts)
    expect(is_number and facts[index][0] == "fact", f"{index} is no fact")
    return facts[index][1], facts[index][2]


# ---------------------------------------------------------------- identities of the language
class Language(set[str]):
    """The letters of an identity and their kinds; what operators, matrices and functions yield are further letters.

    (act A x) is A@x, (mix W x) is x@W, (call f x) is f(x). Operators and matrices are linear, commute with each other,
    and leave coefficients of the other axis outside; of functions nothing is used but that they are functions.
    """

    def __init__(self, kinds: dict[str, str]) -> None:
        super().__init__(kinds)
        self.kinds = dict(kinds)
        self.words: dict[str, tuple[Any, ...]] = {}

    def letter(self, name: str, kind: str) -> Quotient:
        self.add(name)
        self.kinds[name] = kind
        return {((name, 1),): Fraction(1)}, {}

    def value(self, side: str, word: Any, term: Any) -> Quotient:
        top, bottom = inside = quotient(term, self)
        if side != "call":
            return self.applied(side, word, inside)
        used = {letter for part in (top, *map(dict, bottom)) for monomial in part for letter, _ in monomial}
        kind = "scalar" if all(self.kinds[letter] == "scalar" for letter in used) else "field"
        return self.letter(f"{word} {sorted(top.items())} {sorted(bottom.items())}", kind)

    def applied(self, side: str, word: Any, inside: Quotient) -> Quotient:
        """An operator, or a matrix from the right, applied to a quotient, term by term."""
        if word == "I":
            return inside
        if word[0] == "@":
            for factor in word[:0:-1] if side == "act" else word[1:]:
                inside = self.applied(side, factor, inside)
            return inside
        if word[0] == "*":
            return combined("*", [quotient(word[1], self), self.applied(side, word[2], inside)])
        if not isinstance(word, str):
            return combined(word[0], [self.applied(side, part, inside) for part in word[1:]])
        total: Quotient = ({}, {})
        outer, bottom = ("scalar", "channel" if side == "act" else "node"), tuple(sorted(inside[1].items()))
        for monomial, number in inside[0].items():
            kept = tuple(pair for pair in monomial if self.kinds[pair[0]] not in outer)
            alone = kept[0][0] if len(kept) == 1 and kept[0][1] == 1 and not bottom else ""
            operators, matrices, *state = self.words.get(alone, ((), (), kept, bottom))
            key = ((word, *operators), matrices) if side == "act" else (operators, (*matrices, word))
            self.words[str((*key, *state))] = (*key, *state)
            rest = {tuple(pair for pair in monomial if pair not in kept): number}
            total = combined("+", [total, combined("*", [(rest, {}), self.letter(str((*key, *state)), "field")])])
        return total


def check_identity(obligation: dict[str, Any]) -> None:
    """Both terms are the same fraction of polynomials, so that they are equal wherever both are defined."""
    expect(obligation["proof"] == "expansion", "an identity is proved by expansion")
    language = Language(obligation["kinds"])
    given = {name: read(body)[0] for name, body in obligation["given"].items()}
    left, right = (quotient(without_let(read(obligation[side])[0], given), language) for side in ("left", "right"))
    expect(not combined("-", [left, right])[0], "the two sides have different expansions")


# ---------------------------------------------------------------- models
def check_model(problem: Problem, model: dict[str, Any]) -> None:
    values: dict[str, Any] = {}
    for name in problem.letters:
        expect(name in model, f"the model has no value for {name}")
        number = Fraction(model[name])
        size = ["/", str(abs(number.numerator)), str(number.denominator)]
        values[name] = ["-", size] if number < 0 else size
    for formula in problem.assertions:
        expect(is_true(without_let(formula, values)), "the model does not satisfy an assertion")


def is_true(formula: Any) -> bool:
    """Whether a formula without letters holds; only the branches that apply need a value."""
    if formula in ("true", "false"):
        return bool(formula == "true")
    expect(isinstance(formula, list) and formula, f"no formula: {formula}")
    word, parts = formula[0], formula[1:]
    match word:
        case "not":
            return not is_true(parts[0])
        case "and":
            return all(map(is_true, parts))
        case "or":
            return any(map(is_true, parts))
        case "=>":
            return not is_true(parts[0]) or is_true(parts[1])
    choice = formula if word == "ite" else first_choice(parts)
    if choice is not None:
        return is_true(put(formula, choice, choice[2] if is_true(choice[1]) else choice[3]))
    expect(word in ("<", "<=", ">", ">=", "=", "distinct") and len(parts) == 2, f"an unknown word in a formula: {word}")
    gap = quotient(["-", *parts], set())[0].get((), Fraction(0))
    return {"<": gap < 0, "<=": gap <= 0, ">": gap > 0, ">=": gap >= 0, "=": gap == 0, "distinct": gap != 0}[word]


# ---------------------------------------------------------------- certificates
def check_obligation(obligation: dict[str, Any]) -> None:
    if obligation["claim"] == "identity":
        check_identity(obligation)
        return
    problem = Problem(obligation["smt"])
    if obligation["claim"] == "sat":
        check_model(problem, obligation["model"])
        return
    expect(obligation["claim"] == "unsat", "an obligation claims sat or unsat")
    facts = [fact for formula in problem.assertions for fact in facts_of(formula, problem.letters)]
    check_tree(obligation["proof"], facts, problem.letters)


def check(certificate: dict[str, Any]) -> tuple[int, int]:
    """How many obligations were checked, and how many carry no proof.

    Raises:
        Rejected: with the obligation that fails and why.
    """
    expect(certificate.get("format") == FORMAT, f"expected the format {FORMAT}")
    checked = missing = 0
    for number, obligation in enumerate(certificate["obligations"], 1):
        if obligation.get("proof") is None and obligation.get("model") is None:
            missing += 1
            continue
        try:
            check_obligation(obligation)
        except Rejected as reason:
            raise Rejected(f"obligation {number}: {reason}") from None
        except MALFORMED as reason:
            raise Rejected(f"obligation {number} is malformed: {type(reason).__name__} {reason}") from None
        checked += 1
    return checked, missing


def main(arguments: list[str] | None = None) -> int:
    """Checks each file that is named; 0: all obligations were checked, 2: some have no proof, 1: a file is rejected."""
    files = sys.argv[1:] if arguments is None else arguments
    if not files or files[0] in ("-h", "--help"):
        print("rdgraph-check FILE ...\n\nChecks certificates of rdgraph without a solver.")
        return 0 if files else 1
    status = 0
    for file in files:
        try:
            certificate = json.loads(Path(file).read_text(encoding="utf-8"))
            checked, missing = check(certificate)
        except (Rejected, OSError, *MALFORMED) as reason:
            print(f"{file}: rejected: {reason}")
            status = 1
            continue
        if not certificate["obligations"]:
            print(f"{file}: no obligations: the answer rests on normal forms alone, which are not checked")
            continue
        rest = f", {missing} without a proof" if missing else ""
        print(f"{file}: {checked} of {checked + missing} obligations checked{rest}; translation not checked")
        status = status or (2 if missing else 0)
    return status


if __name__ == "__main__":
    sys.exit(main())

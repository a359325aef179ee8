"""Relations between operators, oriented and completed: words of the free algebra get one normal form.

A relation is a polynomial in words that is zero, such as A@A - A. Its largest word (longer first, then by letters) is
rewritten into the rest. Overlaps of two left sides give further relations (Buchberger's procedure in the free algebra)
until nothing new appears or a bound is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import AssumptionError

Word = tuple[str, ...]
Polynomial = dict[Word, sp.Expr]

MAX_WORD = 12
MAX_RULES = 40


@dataclass(frozen=True)
class WordRule:
    """`word` is rewritten into the sum of coefficient times word; all words on the right are smaller."""

    word: Word
    terms: tuple[tuple[Word, sp.Expr], ...]


@dataclass(frozen=True)
class WordRules:
    """Rules, and whether they decide every question: each word has one normal form under them."""

    rules: tuple[WordRule, ...] = ()
    is_complete: bool = True


def completed(relations: Iterable[Polynomial]) -> WordRules:
    """Rules for relations that hold together; `AssumptionError` where they force I = 0.

    >>> one, minus = sp.S.One, sp.S.NegativeOne
    >>> rules = completed([{("A", "A"): one, ("A", "A", "A"): minus}])
    >>> [(r.word, r.terms) for r in rules.rules]
    [(('A', 'A', 'A'), ((('A', 'A'), 1),))]
    """
    return _Completion(list(relations)).run()


class _Completion:
    """Buchberger's procedure with bounds on the length of words and the number of rules."""

    def __init__(self, pending: list[Polynomial]) -> None:
        self.pending = pending
        self.rules: list[WordRule] = []
        self.is_complete = True

    def run(self) -> WordRules:
        while self.pending:
            polynomial = self._reduced(self.pending.pop(0))
            rule = self._oriented(polynomial) if polynomial else None
            if rule is None:
                continue
            self._retire(rule)
            for other in [*self.rules, rule]:
                self.pending += [*self._overlaps(rule, other), *(self._overlaps(other, rule) if other != rule else ())]
            self.rules.append(rule)
            if len(self.rules) > MAX_RULES:
                return WordRules(tuple(self.rules), is_complete=False)
        return WordRules(tuple(sorted(self.rules, key=lambda r: _rank(r.word))), self.is_complete)

    def _oriented(self, polynomial: Polynomial) -> WordRule | None:
        """The rule of a relation; None, and incomplete, where its leading coefficient might be zero."""
        word = max(polynomial, key=_rank)
        leading = polynomial[word]
        if not leading.is_nonzero:
            self.is_complete = False
            return None
        if not word:
            raise AssumptionError("the hypotheses about operators contradict each other: they imply I = 0; drop one")
        rest = {w: sp.cancel(-c / leading) for w, c in polynomial.items() if w != word}
        return WordRule(word, tuple(sorted(rest.items(), key=lambda pair: _rank(pair[0]))))

    def _retire(self, rule: WordRule) -> None:
        """Older rules whose word contains the new one become relations again."""
        for old in [r for r in self.rules if next(_places(rule.word, r.word), None) is not None]:
            self.rules.remove(old)
            self.pending.append(_relation(old))

    def _overlaps(self, first: WordRule, second: WordRule) -> Iterator[Polynomial]:
        """Both ways to rewrite a word that starts with one left side and ends with the other, subtracted."""
        for size in range(1, min(len(first.word), len(second.word))):
            if first.word[-size:] != second.word[:size]:
                continue
            if len(first.word) + len(second.word) - size > MAX_WORD:
                self.is_complete = False
                continue
            head, tail = first.word[:-size], second.word[size:]
            gap: Polynomial = {}
            for word, c in first.terms:
                _add(gap, word + tail, c)
            for word, c in second.terms:
                _add(gap, head + word, -c)
            yield gap

    def _reduced(self, polynomial: Polynomial) -> Polynomial:
        done: Polynomial = {}
        todo = dict(polynomial)
        while todo:
            word = max(todo, key=_rank)
            coefficient = todo.pop(word)
            rule, place = next(((r, at) for r in self.rules for at in _places(r.word, word)), (None, 0))
            if rule is None:
                _add(done, word, coefficient)
                continue
            head, tail = word[:place], word[place + len(rule.word) :]
            for middle, c in rule.terms:
                _add(todo, head + middle + tail, coefficient * c)
        return done


def _relation(rule: WordRule) -> Polynomial:
    return {rule.word: sp.S.One} | {word: -c for word, c in rule.terms}


def _rank(word: Word) -> tuple[int, Word]:
    return len(word), word


def _places(pattern: Word, word: Word) -> Iterator[int]:
    """Where a pattern occurs in a word."""
    return (i for i in range(len(word) - len(pattern) + 1) if word[i : i + len(pattern)] == pattern)


def _add(polynomial: Polynomial, word: Word, coefficient: sp.Expr) -> None:
    total = sp.cancel(polynomial.get(word, sp.S.Zero) + coefficient)
    if total == 0:
        polynomial.pop(word, None)
    else:
        polynomial[word] = total

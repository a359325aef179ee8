"""`equivalent`: whether two systems have the same flow, proved, under conditions on the coefficients, or refuted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import sympy as sp

from rdgraph.answers import Status, remember_question
from rdgraph.errors import InvalidArgument, NotApplicable, RdgraphError
from rdgraph.language.reader import TIME_LETTER, start_of
from rdgraph.language.tree import Kind
from rdgraph.language.tree import field as field_name
from rdgraph.reals.budget import within_budget
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.equality.equality_proof import (
    CONDITIONAL,
    PROVED,
    REFUTED,
    RESTRICTED,
    Comparison,
    Equivalence,
    make_rules,
)
from rdgraph.theory.equality.hypotheses import Hypotheses

# ---------------------------------------------------------------------- field equivalence
# Equivalence of systems of several fields: equation by equation, up to names and order of the fields.
#
# Equations of second order are compared in their first-order form, H'' = f as H' = V and V' = f with V the velocity.

#: Most fields for which all pairings are tried.
MOST_FIELDS = 5
#: Most sets of conditions that are tried for all equations together.
_MOST_ALTERNATIVES = 16

#: The time as a separate word.
_TIME = re.compile(rf"\b{TIME_LETTER}\b")

Pairing = dict[str, str]


def compare_fields(
    first: System, second: System, given: tuple[str, ...], fields: Mapping[str, str] | None
) -> Equivalence:
    """The verdict about two systems of which at least one has several fields; see `equivalent`."""
    one, other = first.fields, second.fields
    if fields is not None:
        return _Pair(first, second, given, _checked(fields, one, other)).answer()
    if len(one) != len(other):
        note = f"{len(one)} against {len(other)} states: {', '.join(one)} and {', '.join(other)}"
        return Equivalence(REFUTED, reason=note)
    best: Equivalence | None = None
    for pairing in _pairings(one, other):
        answer = _Pair(first, second, given, pairing).answer()
        if answer.outcome == PROVED:
            return answer
        best = answer if best is None or _rank(answer) < _rank(best) else best
    assert best is not None
    return best


def _at_all_times(part: Equivalence) -> Equivalence:
    """The verdict without conditions on the time t, which hold only at isolated times."""
    if part.outcome != CONDITIONAL:
        return part
    lasting = tuple(texts for texts in part.conditions if not any(_TIME.search(text) for text in texts))
    if lasting:
        return replace(part, conditions=lasting)
    return replace(
        part, outcome=REFUTED if part.witness else Status.UNDECIDED, conditions=(), reason="equal at single times"
    )


def _rank(answer: Equivalence) -> int:
    """The rank of a verdict, the strongest first; a pairing that is not refuted ranks before refuted ones."""
    return (PROVED, RESTRICTED, CONDITIONAL, Status.UNDECIDED, REFUTED).index(answer.outcome)


def _checked(fields: Mapping[str, str], one: tuple[str, ...], other: tuple[str, ...]) -> Pairing:
    if set(fields) != set(one) or sorted(fields.values()) != sorted(other):
        raise InvalidArgument(
            f"fields must map each of {', '.join(one)} to one of {', '.join(other)}, got {dict(fields)}"
        )
    return {name: fields[name] for name in one}


def _pairings(one: tuple[str, ...], other: tuple[str, ...]) -> Iterator[Pairing]:
    """The pairing of equal names if there is one; else the pairing in order, then all others."""
    if set(one) == set(other):
        yield {name: name for name in one}
        return
    if len(one) > MOST_FIELDS:
        raise NotApplicable(f"too many pairings of {len(one)} fields with different names; give fields={{...}}")
    for order in itertools.permutations(other):
        yield dict(zip(one, order, strict=True))


@dataclass(frozen=True)
class _Pair:
    """Two systems with a pairing of their fields."""

    first: System
    second: System
    given: tuple[str, ...]
    pairing: Pairing

    def answer(self) -> Equivalence:
        parts = self._parts(self.given)
        pairs = tuple(self.pairing.items())
        refuted = next((part for part in parts.values() if part.outcome == REFUTED), None)
        if refuted is not None:
            return self._refuted(parts)
        statuses = {part.outcome for part in parts.values()}
        if Status.UNDECIDED in statuses:
            note = "; ".join(
                f"{name}: {p.reason or 'not decided'}" for name, p in parts.items() if p.outcome == Status.UNDECIDED
            )
            return Equivalence(Status.UNDECIDED, reason=note, is_complete=False, fields=pairs)
        domain = tuple(dict.fromkeys(text for part in parts.values() for text in part.domain))
        if CONDITIONAL not in statuses:
            status = PROVED if statuses == {PROVED} else RESTRICTED
            return Equivalence(status, domain=domain, fields=pairs)
        return replace(self._conditional(parts), fields=pairs)

    def _parts(self, given: tuple[str, ...]) -> dict[str, Equivalence]:
        """The verdicts about the equation of every state and about its noise."""
        rules, letters = self._rules(given), self._letters()
        verdicts = {}
        for ours, theirs in self.pairing.items():
            verdicts[ours] = Comparison(
                self.first.flow[ours], self.second.flow[theirs].xreplace(letters), rules
            ).answer()
            one, other = self.first.noise.get(ours, sp.S.Zero), self.second.noise.get(theirs, sp.S.Zero)
            if one != 0 or other != 0:
                verdicts[f"noise of {ours}"] = Comparison(one, other.xreplace(letters), rules).answer()
        return {name: _at_all_times(part) for name, part in verdicts.items()}

    def _letters(self) -> dict[sp.Basic, sp.Basic]:
        """The names of the first system for the fields of the second and for their starts."""
        pairs = [(name(theirs), name(ours)) for ours, theirs in self.pairing.items() for name in (str, start_of)]
        return {field_name(theirs): field_name(ours) for theirs, ours in pairs}

    def _rules(self, given: tuple[str, ...]) -> Hypotheses:
        states = {name: Kind.FIELD for ours in self.first.fields for name in (ours, start_of(ours))}
        gone = {letter.name for letter in self._letters()}
        others = {n: kind for n, kind in self.second.letters.items() if n not in gone}
        kinds = [self.first.letters | states, others]
        return make_rules(kinds, [self.first.assumptions, self.second.assumptions], given, self._operators())

    def _operators(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The declared properties of further operators in either system."""
        facts: dict[str, tuple[str, ...]] = {}
        for name, words in (*self.first.operators.entries, *self.second.operators.entries):
            facts[name] = tuple(dict.fromkeys((*facts.get(name, ()), *words)))
        return tuple(sorted(facts.items()))

    def _refuted(self, parts: Mapping[str, Equivalence]) -> Equivalence:
        """The verdict from the first equation that differs."""
        name, part = next((n, p) for n, p in parts.items() if p.outcome == REFUTED)
        pairs = tuple(self.pairing.items())
        note = f"the {name if name.startswith('noise') else f'equation of {name}'} differs" + (
            f"; {part.reason}" if part.reason else ""
        )
        return replace(part, reason=note, fields=pairs)

    def _conditional(self, parts: Mapping[str, Equivalence]) -> Equivalence:
        """The verdict with conditions under which all equations agree, each set proved for all of them together."""
        choices = [part.conditions for part in parts.values() if part.outcome == CONDITIONAL]
        joined = [tuple(dict.fromkeys(itertools.chain(*choice))) for choice in itertools.product(*choices)]
        complete = len(joined) <= _MOST_ALTERNATIVES and all(part.is_complete for part in parts.values())
        witness = next((part.witness for part in parts.values() if part.witness is not None), None)
        if len(choices) == 1:
            return Equivalence(CONDITIONAL, tuple(joined), witness, is_complete=complete)
        valid = [texts for texts in dict.fromkeys(joined[:_MOST_ALTERNATIVES]) if self._holds(texts)]
        if valid:
            return Equivalence(CONDITIONAL, tuple(valid), witness, is_complete=complete and len(valid) == len(joined))
        status = REFUTED if witness is not None else Status.UNDECIDED
        return Equivalence(status, witness=witness, reason="different equations agree under different conditions")

    def _holds(self, texts: tuple[str, ...]) -> bool:
        try:
            parts = self._parts((*self.given, *texts))
        except RdgraphError:
            return False
        return all(part.outcome == PROVED for part in parts.values())


# ---------------------------------------------------------------------- equivalence
def _undecided(problem: Exception) -> Equivalence:
    return Equivalence(Status.UNDECIDED, reason=str(problem), is_complete=False)


@within_budget(_undecided)
def equivalent(
    first: System | str,
    second: System | str,
    given: Iterable[str] = (),
    *,
    rescale_time: bool = False,
    fields: Mapping[str, str] | None = None,
) -> Equivalence:
    """Compare two right-hand sides for every graph, state and admissible coefficient.

    Coefficients with the same name are the same coefficient, with the assumptions of both systems.

    Args:
        first: a system, or a text or name that `parse` reads.
        second: the system to compare with.
        given: equations that may be used: coefficients ("beta = 0"), matrices ("W = 0"), operator hypotheses
            ("A@A = A", "L@L = L").
        rescale_time: whether the systems may differ by a positive factor, that is in speed along the same path.
        fields: the field of the second system for every field of the first, velocities included. By default fields with
            equal names are paired, else all pairings are tried, and the answer says which one was used.

    Returns:
        proved, equal under conditions, refuted with a counter-example, or undecided.

    Raises:
        InvalidArgument: a letter has two kinds, or a hypothesis is not an equation.
        AssumptionError: assumptions that contradict each other.

    >>> import rdgraph as rd
    >>> str(rd.equivalent("-alpha*L@H + beta*L@H", "-alpha*L@H", given=["beta = 0"]))
    'proved'
    >>> str(rd.equivalent("ST", "CGNN"))
    'equal if W = 0, alpha = 1, beta = 1'
    >>> str(rd.equivalent("H**2/H", "H"))
    'proved where H != 0; only one side is defined elsewhere'
    >>> str(rd.equivalent("H'' = -H - alpha*H'", "H' = V; V' = -alpha*V - H"))
    "proved with H = H, H' = V"
    """
    systems = parse(first), parse(second)
    hypotheses = (given,) if isinstance(given, str) else tuple(given)
    if fields is not None or not all(system.is_single for system in systems):
        if rescale_time:
            raise NotApplicable("expected one field of first order in each system for rescale_time, got several")
        answer = compare_fields(*systems, hypotheses, fields)
    else:
        rules = make_rules([s.letters for s in systems], [s.assumptions for s in systems], hypotheses)
        question = Comparison(systems[0].expression, systems[1].expression, rules)
        answer = question.at_any_speed() if rescale_time else question.answer()
    options = {"given": hypotheses, "rescale_time": rescale_time, "fields": fields}
    asked = {name: value for name, value in options.items() if value}
    remember_question(answer, partial(equivalent, *systems, **asked))  # type: ignore[arg-type]
    return answer

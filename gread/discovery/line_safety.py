"""`Examination`: which equations may be trained: those whose solutions are proved to exist for all time.

An encoder may produce any state, so a blow-up from any initial state is possible. An equation without a proof of
existence gets tanh around the terms that may outgrow the state; if that is not proved to be enough, it is excluded. An
equation whose solutions exist because such a term damps them, as -H**3 does, gets tanh as well if it is stepped: from
large states every step exceeds its limit. A given step that is proved to exceed its limit, at the initial size of the
coefficients, excludes an equation. Whether the terms that outgrow the state blow up by themselves is decided once for
each set of them, and is the reported reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import sympy as sp

from gread.discovery.term_grammar import Line, Term
from gread.settings.gread_settings import AUTO, GreadSettings
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.reals.budget import limited
from rdgraph.reports.findings import PROBLEM
from rdgraph.reports.run_settings import read_run
from rdgraph.reports.safety_checks import stepping
from rdgraph.theory.global_existence import LOCAL, Existence, existence, existence_by_growth
from rdgraph.vocabulary.methods import FIXED

#: The outcomes of an examination.
STATES = SAFE, BOUNDED, LEFT_OUT = ("safe", "bounded", "left out")
#: Seconds of computing for how terms blow up, and for a step.
SECONDS = 2.0
#: The size of coefficients at which a step is checked: the initial value of those in (0, 1).
START = sp.Rational(1, 2)
#: Findings about an equation, in a few words that can be counted.
BLOW_UP, UNKNOWN, STIFF, STEP, METHOD = (
    "terms that outgrow the state can blow up", "existence for all time is not settled",
    "solutions exist for all time, but no step is within its limit for all states",
    "the step is beyond its limit", "the method does not apply",
)  # fmt: skip


@dataclass(frozen=True)
class Safety:
    """The outcome for an equation: trained unchanged (safe), with tanh (bounded), or left out.

    `line` is the equation to train, `finding` the problem in a few words ("" if there is none) and `reason` the proof
    or the details.
    """

    state: str
    line: Line
    finding: str
    reason: str


@dataclass(eq=False)
class Examination:
    """Which equations may be trained with the settings of a network.

    Args:
        settings: The network: its adjacency, time, method and step.
        seconds: The time limit for how terms blow up, and for a step; what takes longer is undecided.

    >>> from gread.discovery.term_grammar import find_terms
    >>> examined, grammar = Examination(GreadSettings()), find_terms("small")
    >>> for term in grammar.terms[-2:]:
    ...     safety = examined(grammar.line([term]))
    ...     print(f"{safety.state}: {safety.line.formula} ({safety.finding or 'no finding'})")
    bounded: alpha*tanh(H**3) (terms that outgrow the state can blow up)
    bounded: -alpha*tanh(H**3) (solutions exist for all time, but no step is within its limit for all states)
    """

    settings: GreadSettings
    seconds: float = SECONDS
    _outgrow: dict[str, bool] = field(default_factory=dict)
    _fates: dict[Line, tuple[str, str]] = field(default_factory=dict)

    def __call__(self, line: Line) -> Safety:
        """The safety of an equation."""
        proof: Existence | None = existence_by_growth(line.system)
        if proof is not None and not (self._has_steps and any(map(self._outgrows, line.terms))):
            return self._stepped(Safety(SAFE, line, "", proof.reason))
        finding, reason = self._fate(line) if proof is None else (STIFF, proof.reason)
        chosen = line.with_terms([term.bounded if self._outgrows(term) else term for term in line.terms])
        if chosen == line or existence_by_growth(chosen.system) is None:
            return Safety(LEFT_OUT, line, finding, reason)
        return self._stepped(Safety(BOUNDED, chosen, finding, reason))

    @property
    def _has_steps(self) -> bool:
        """Whether equations are stepped, by the method of the settings or by the one chosen for them."""
        return self.settings.method == AUTO or self.settings.method in FIXED

    def _stepped(self, safety: Safety) -> Safety:
        """The same, or left out if the method or its step cannot be used; what is undecided is tried."""
        try:
            problem = limited(self.seconds, self._step_problem, safety.line)
        except Undecided:
            return safety
        return safety if problem is None else Safety(LEFT_OUT, safety.line, *problem)

    def _outgrows(self, term: Term) -> bool:
        """Whether solutions of a term alone, with either sign, are not proved to exist for all time."""
        if term.body not in self._outgrow:
            alone = Line((Term(term.body),), ("alpha",), "scalar")
            self._outgrow[term.body] = existence_by_growth(alone.system) is None
        return self._outgrow[term.body]

    def _fate(self, line: Line) -> tuple[str, str]:
        """What the terms that outgrow the state do by themselves: a finding and its details."""
        terms = [term for term in line.terms if self._outgrows(term)]
        if not terms:
            return UNKNOWN, "no term outgrows the state, but no growth bound is proved for all of them together"
        part = line.with_terms(terms)
        if part not in self._fates:
            try:
                answer = limited(self.seconds, existence, part.system)
                word = BLOW_UP if answer.value == LOCAL else UNKNOWN
                self._fates[part] = word, f"dH/dt = {part.system.text}: {answer.reason}"
            except Undecided as problem:
                self._fates[part] = UNKNOWN, f"dH/dt = {part.system.text}: {problem}"
        return self._fates[part]

    def _step_problem(self, line: Line) -> tuple[str, str] | None:
        """Why a given step exceeds its limit; a step chosen from the equation never does."""
        chosen = self.settings
        if chosen.method not in FIXED:
            return None  # "auto", without a step, or adaptive; if it does not apply, the training reports it
        normalisation = chosen.normalisation if chosen.adjacency == "original" else "row"
        for size in (START, -START):
            values = {n: size if t.is_free else START for n, t in zip(line.coefficients, line.terms, strict=True)}
            try:
                run = read_run(line.system, normalisation, chosen.time, chosen.method, chosen.step, None, values)
                problems = [finding for finding in stepping(run) if finding.outcome == PROBLEM]
            except NotApplicable as problem:
                return METHOD, str(problem)
            if problems:
                assigned = ", ".join(f"{name} = {value}" for name, value in values.items())
                return STEP, f"{problems[0].text} with {assigned}"
        return None


#: A function that examines equations.
Examine = Callable[[Line], Safety]


def finding_rows(counts: Counter[tuple[str, str]]) -> list[dict[str, str | int]]:
    """Table rows: the number of equations by finding and outcome."""
    return [
        {"finding": finding, "outcome": state, "equations": count}
        for (state, finding), count in sorted(counts.items(), key=lambda item: -item[1])
    ]

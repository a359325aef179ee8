"""`Examination`: which equations may be trained: those whose solutions are proved to exist for all time.

States of a network are whatever its encoder gives, so that a blow-up from any start is in reach. An equation that is
not proved to be free of it gets tanh around the terms that may outgrow the state; where that is not proved to be enough
it is left out. One whose solutions exist for all time because such a term damps them, as -H**3 does, gets tanh as well
where it is stepped: from large states every step is beyond its limit. A step that is given and proved to be beyond its
limit, with coefficients of the size they start with, leaves an equation out. Whether the terms that outgrow the state
do blow up, left to themselves, is asked once for each set of them, and is the reason that is told.
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

#: What becomes of an equation.
STATES = SAFE, BOUNDED, LEFT_OUT = ("safe", "bounded", "left out")
#: Seconds of computing for how terms blow up, and for a step.
SECONDS = 2.0
#: The size of coefficients for which a step is asked about: where those in (0, 1) start.
START = sp.Rational(1, 2)
#: What is said of an equation, in a few words that can be counted.
BLOW_UP, UNKNOWN, STIFF, STEP, METHOD = (
    "terms that outgrow the state can blow up", "existence for all time is not settled",
    "solutions exist for all time, but no step is within its limit for all states",
    "the step is beyond its limit", "the method does not apply",
)  # fmt: skip


@dataclass(frozen=True)
class Safety:
    """What becomes of an equation: trained as it is (safe), with tanh (bounded), or left out.

    `line` is what is trained, `finding` the trouble in a few words ("" where there is none) and `reason` the proof, or
    what was found.
    """

    state: str
    line: Line
    finding: str
    reason: str


@dataclass(eq=False)
class Examination:
    """Which equations may be trained with the settings of a network.

    Args:
        settings: The network: its adjacency, time, method and step count.
        seconds: The time for how terms blow up, and for a step; what takes longer is not settled.

    >>> from gread.discovery.term_grammar import find_terms
    >>> examined, grammar = Examination(GreadSettings()), find_terms("small")
    >>> for term in grammar.terms[-2:]:
    ...     found = examined(grammar.line([term]))
    ...     print(f"{found.state}: {found.line.formula} ({found.finding or 'no finding'})")
    bounded: alpha*tanh(H**3) (terms that outgrow the state can blow up)
    bounded: -alpha*tanh(H**3) (solutions exist for all time, but no step is within its limit for all states)
    """

    settings: GreadSettings
    seconds: float = SECONDS
    _outgrow: dict[str, bool] = field(default_factory=dict)
    _fates: dict[Line, tuple[str, str]] = field(default_factory=dict)

    def __call__(self, line: Line) -> Safety:
        """What becomes of an equation."""
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
        """Whether equations are stepped: by the method of the settings, or by the one that follows from them."""
        return self.settings.method == AUTO or self.settings.method in FIXED

    def _stepped(self, found: Safety) -> Safety:
        """The same, or left out where the method or its step cannot be used."""
        trouble = self._step_trouble(found.line)
        return found if trouble is None else Safety(LEFT_OUT, found.line, *trouble)

    def _outgrows(self, term: Term) -> bool:
        """Whether a term alone, with either sign, is not proved to have solutions for all time."""
        if term.body not in self._outgrow:
            alone = Line((Term(term.body),), ("alpha",), "scalar")
            self._outgrow[term.body] = existence_by_growth(alone.system) is None
        return self._outgrow[term.body]

    def _fate(self, line: Line) -> tuple[str, str]:
        """What the terms that outgrow the state do, left to themselves: in a few words, and in more."""
        terms = [term for term in line.terms if self._outgrows(term)]
        if not terms:
            return UNKNOWN, "no term outgrows the state, but no bound of growth is proved for all of them"
        part = line.with_terms(terms)
        if part not in self._fates:
            try:
                found = limited(self.seconds, existence, part.system)
                word = BLOW_UP if found.value == LOCAL else UNKNOWN
                self._fates[part] = word, f"dH/dt = {part.system.text}: {found.reason}"
            except Undecided as problem:
                self._fates[part] = UNKNOWN, f"dH/dt = {part.system.text}: {problem}"
        return self._fates[part]

    def _step_trouble(self, line: Line) -> tuple[str, str] | None:
        """Why the method or its step cannot be used; None where they can, or where nothing is known against them."""
        try:
            return limited(self.seconds, self._asked_step, line)
        except Undecided:
            return None

    def _asked_step(self, line: Line) -> tuple[str, str] | None:
        """Whether a step that is given is within its limit; one that follows from the equation is."""
        chosen = self.settings
        if chosen.method not in FIXED:
            return None  # it is open, has no step, or chooses its own; where it does not apply the training says so
        normalisation = chosen.normalisation if chosen.adjacency == "original" else "row"
        for size in (START, -START):
            values = {n: size if t.is_free else START for n, t in zip(line.coefficients, line.terms, strict=True)}
            try:
                run = read_run(line.system, normalisation, chosen.time, chosen.method, chosen.step, None, values)
                problems = [finding for finding in stepping(run) if finding.outcome == PROBLEM]
            except NotApplicable as problem:
                return METHOD, str(problem)
            if problems:
                told = ", ".join(f"{name} = {value}" for name, value in values.items())
                return STEP, f"{problems[0].text} with {told}"
        return None


#: What examines equations.
Examine = Callable[[Line], Safety]


def told_counts(found: Counter[tuple[str, str]]) -> list[dict[str, str | int]]:
    """Table rows: how many equations had which trouble, and what became of them."""
    return [
        {"finding": finding, "what became of them": state, "equations": count}
        for (state, finding), count in sorted(found.items(), key=lambda item: -item[1])
    ]

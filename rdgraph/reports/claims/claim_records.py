"""Claims: statements with sources, decided by computation and cross-checked on random graphs.

The statements are data (`data/claims.toml`); a decider registered under the claim's id computes the status, and a
cross-check registered under the same id is run on random graphs. Nothing here stores an answer: the
recorded expectation is only compared with what was computed.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources
from typing import Any

from rdgraph.answers import Answer, Status
from rdgraph.errors import RdgraphError, UnknownName
from rdgraph.reals.basis import record_engines, watched
from rdgraph.wording import html_table, markdown_row

HOLDS, HOLDS_IF, FALSE = "holds", "holds if", "false"
CROSS_CHECK_GRAPHS = 25
_MODULES = (
    "blurring", "passbands", "integrators", "identifiability", "well_posedness", "split_flows", "special_cases",
)  # fmt: skip


@dataclass(frozen=True)
class ClaimStatement:
    """A statement, its source and its recorded status."""

    id: str
    title: str
    statement: str
    source: str
    expected: str
    systems: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClaimCheck:
    """One check of a claim: the question, whether it passed, and the result in words."""

    text: str
    passed: bool
    result: str = ""


@dataclass
class Evidence:
    """Collects checks while a decider runs."""

    checks: list[ClaimCheck] = field(default_factory=list)

    def check(self, text: str, passed: object, result: object = "") -> bool:
        """Record a check; returns whether it passed."""
        self.checks.append(ClaimCheck(text, bool(passed), str(result)))
        return bool(passed)

    @property
    def all_passed(self) -> bool:
        return all(c.passed for c in self.checks)


@dataclass(frozen=True)
class ClaimVerdict:
    """A computed status: holds, holds if (condition), false (witness), undecided."""

    status: str
    condition: str = ""
    witness: str = ""


@dataclass(frozen=True, repr=False)
class Claim(Answer):
    """A decided claim; true only if it holds without a condition."""

    id: str
    title: str
    statement: str
    source: str
    assumptions: tuple[str, ...]
    outcome: str
    condition: str
    evidence: tuple[ClaimCheck, ...]
    witness: str
    expected: str
    seconds: float

    @property
    def value(self) -> bool | None:
        """Whether the claim holds, possibly under a condition; None if undecided."""
        return None if self.outcome == Status.UNDECIDED else self.outcome != FALSE

    @property
    def status(self) -> Status:
        """proved if it was decided and every check passed, else undecided."""
        is_decided = self.value is not None and all(check.passed for check in self.evidence)
        return Status.PROVED if is_decided else Status.UNDECIDED

    @property
    def reason(self) -> str:
        """The counter-example, or what was checked."""
        return self.witness or "; ".join(check.text for check in self.evidence)

    @property
    def assumes(self) -> str:
        """The assumptions of the statement."""
        return "; ".join(self.assumptions)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The condition under which it holds."""
        return (self.condition,) if self.condition else ()

    @property
    def headline(self) -> str:
        return f"{self.id} {self.outcome}: {self.statement}"

    def __bool__(self) -> bool:
        return self.outcome == HOLDS

    @property
    def as_expected(self) -> bool:
        """Whether every check passed and the status is the recorded one."""
        return self.outcome == self.expected and all(c.passed for c in self.evidence)

    @property
    def verdict(self) -> str:
        return f"{self.outcome} {self.condition}".strip() if self.outcome == HOLDS_IF else self.outcome

    def _repr_html_(self) -> str:
        rows = [("statement", self.statement), ("source", self.source), ("status", self.verdict)]
        rows += [("assumption", text) for text in self.assumptions]
        rows += [("passed" if check.passed else "failed", f"{check.text}: {check.result}") for check in self.evidence]
        rows += [("witness", self.witness)] if self.witness else []
        return html_table(f"{self.id}: {self.title}", rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id, "title": self.title, "statement": self.statement, "source": self.source,
            "assumptions": list(self.assumptions), "status": self.outcome, "condition": self.condition,
            "witness": self.witness, "expected": self.expected, "as_expected": self.as_expected,
            "evidence": [{"text": c.text, "passed": c.passed, "result": c.result} for c in self.evidence],
            "engines": self.engines, "seconds": round(self.seconds, 3),
        }  # fmt: skip


Decider = Callable[[Evidence], ClaimVerdict]
CrossCheck = Callable[[Any, Any], Any]
_deciders: dict[str, Decider] = {}
_cross_checks: dict[str, CrossCheck] = {}


def decides(claim_id: str) -> Callable[[Decider], Decider]:
    """Register the decider of a claim."""

    def register(function: Decider) -> Decider:
        _deciders[claim_id] = function
        return function

    return register


def cross_checks(claim_id: str) -> Callable[[CrossCheck], CrossCheck]:
    """Register a numerical cross-check: f(adjacency, rng) on a random graph, True where the claim's evidence is met."""

    def register(function: CrossCheck) -> CrossCheck:
        _cross_checks[claim_id] = function
        return function

    return register


@cache
def statements() -> dict[str, ClaimStatement]:
    """All registered statements by id."""
    for name in _MODULES:
        import_module(f"rdgraph.reports.claims.{name}")
    raw = tomllib.loads(resources.files("rdgraph").joinpath("data/claims.toml").read_text(encoding="utf-8"))
    claims = {}
    for item in raw["claim"]:
        entry = {**item, "systems": tuple(item.get("systems", ())), "assumptions": tuple(item.get("assumptions", ()))}
        claims[item["id"]] = ClaimStatement(**entry)
    return claims


def select(name: str | None = None) -> list[ClaimStatement]:
    """Statements of a claim id ("M1.4"), a group ("M1"), a catalogue system ("BS"), or all of them."""
    every = statements()
    if name is None or name.casefold() == "all":
        return list(every.values())
    wanted = name.strip().casefold()
    chosen = [
        s for s in every.values()
        if wanted in (s.id.casefold(), s.id.split(".")[0].casefold()) or wanted in {x.casefold() for x in s.systems}
    ]  # fmt: skip
    if not chosen:
        from rdgraph.systems.catalogue import catalogue

        if name in catalogue and (canonical := catalogue.entry(name).name.casefold()) != wanted:
            return select(canonical)
        names = {s.id for s in every.values()} | {x for s in every.values() for x in s.systems} | {"all"}
        raise UnknownName("claim, group of claims or system with claims", name, names)
    return chosen


def decide(statement: ClaimStatement) -> Claim:
    """Run the decider and the cross-check of one statement."""
    started = time.perf_counter()
    evidence = Evidence()
    with watched() as basis:
        verdict = _run_decider(statement.id, evidence)
    if statement.id in _cross_checks:
        passed, result = _run_cross_check(_cross_checks[statement.id])
        evidence.check("cross-check on random graphs", passed, result)
    claim = Claim(
        statement.id, statement.title, statement.statement, statement.source, statement.assumptions, verdict.status,
        verdict.condition, tuple(evidence.checks), verdict.witness, statement.expected, time.perf_counter() - started,
    )  # fmt: skip
    record_engines(claim, basis)
    return claim


def verify(name: str | None = None, progress: Callable[[Claim], None] | None = None) -> list[Claim]:
    """Decide all claims, or those of a claim id, a group or a catalogue system.

    Args:
        name: the id of a claim, a group or a system; all by default.
        progress: called with every claim after it was decided.

    Returns:
        The claims with their verdicts and evidence.

    Raises:
        UnknownName: no claim, group or system has this name.

    >>> import rdgraph as rd
    >>> [c.outcome for c in rd.verify("M1.1")]
    ['holds']
    """
    decided = []
    for statement in select(name):
        claim = decide(statement)
        decided.append(claim)
        if progress is not None:
            progress(claim)
    return decided


def markdown(claims: Iterable[Claim], marks: Mapping[str, str] | None = None) -> str:
    """The claims as a markdown table; `marks` adds a column with a text for each claim id that has one."""
    names = ["claim", "statement", "status", "witness", "as recorded", *(["Coq"] if marks is not None else [])]
    lines = [markdown_row(names), "|---" * len(names) + "|"]
    for c in claims:
        mark = () if marks is None else (marks.get(c.id, ""),)
        cells = (c.id, c.statement, c.verdict, c.witness, "yes" if c.as_expected else "NO", *mark)
        lines.append(markdown_row(cells))
    return "\n".join(lines)


def _run_decider(claim_id: str, evidence: Evidence) -> ClaimVerdict:
    """An undecided or refused question leaves the claim undecided, with the reason as a failed check."""
    if claim_id not in _deciders:
        return ClaimVerdict(Status.UNDECIDED.value)
    try:
        return _deciders[claim_id](evidence)
    except RdgraphError as problem:
        evidence.check("the machinery answers every question", False, problem)
        return ClaimVerdict(Status.UNDECIDED.value)


def _run_cross_check(function: CrossCheck) -> tuple[bool, str]:
    """The same random graphs on every run, small ones first: the first that fails is reported."""
    from rdgraph.reports.claims.numerics import connected_graphs

    for index, (weights, rng) in enumerate(connected_graphs(CROSS_CHECK_GRAPHS)):
        if not function(weights, rng):
            return False, f"fails on the graph {weights.tolist()}, number {index}"
    return True, f"{CROSS_CHECK_GRAPHS} graphs"

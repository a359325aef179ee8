"""The claims: all decided, each as recorded; and a broken core is noticed."""

from __future__ import annotations

import dataclasses
import re

import pytest

import rdgraph as rd
from rdgraph.check_certificate import check
from rdgraph.reals.certificates import certified
from rdgraph.reals.judge import recorded
from rdgraph.reports.claims import claim_records
from tests.paths import ROOT

IDS = list(claim_records.statements())


def test_groups_and_sources() -> None:
    assert {i.split(".")[0] for i in IDS} == {"M1", "M2", "M3", "M4", "M6", "M8"}
    for statement in claim_records.statements().values():
        assert statement.source
        assert statement.expected in ("holds", "holds if", "false", "undecided")
        assert statement.id in claim_records._deciders
    assert set(claim_records._deciders) == set(IDS)
    assert set(claim_records._cross_checks) <= set(IDS)


@pytest.mark.parametrize("claim_id", IDS)
def test_decided_as_recorded(claim_id: str) -> None:
    """And every obligation of the decision is checked without a solver."""
    with recorded() as asked:
        (claim,) = rd.verify(claim_id)
    failed = [c for c in claim.evidence if not c.passed]
    assert not failed
    assert claim.outcome == claim.expected
    assert len(claim.evidence) >= 2
    assert bool(claim.condition) == (claim.outcome == "holds if")
    if claim.outcome == "false":
        assert claim.witness
    made = certified({"claim": claim_id}, asked)
    missing = [entry for entry in made["obligations"] if (entry.get("proof") or entry.get("model")) is None]
    assert check(made)[1] == len(missing)
    # identities that use hypotheses about products or weights of nodes
    assert all(entry["claim"] == "identity" for entry in missing)
    assert len(missing) <= {"M2.9": 5, "M3.6": 1}.get(claim_id, 0)


def test_selection() -> None:
    assert [s.id for s in claim_records.select("m1.4")] == ["M1.4"]
    assert {s.id for s in claim_records.select("fisher")} == {s.id for s in claim_records.select("F")}
    assert all("BS" in s.systems for s in claim_records.select("BS"))
    with pytest.raises(rd.errors.UnknownName, match="expected a claim"):
        claim_records.select("nothing")


def test_a_wrong_core_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sign flipped in every symbol the verdicts must not survive."""
    from rdgraph.reports.claims import blurring

    real = blurring.symbol
    monkeypatch.setattr(blurring, "symbol", lambda system: -real(system))
    claim = claim_records.decide(claim_records.statements()["M1.5"])
    assert claim.outcome == "false"
    assert not claim.as_expected


def test_a_failing_cross_check_shows_its_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(claim_records._cross_checks, "M1.1", lambda adjacency, rng: len(adjacency) < 3)
    claim = claim_records.decide(claim_records.statements()["M1.1"])
    assert not claim.as_expected
    assert "fails on the graph" in claim.evidence[-1].result


def test_unregistered_claim_is_undecided() -> None:
    stray = dataclasses.replace(claim_records.statements()["M1.1"], id="X1")
    assert claim_records.decide(stray).status == "undecided"


def test_the_committed_table_is_the_computed_one() -> None:
    text = (ROOT / "docs/measured/claims.md").read_text(encoding="utf-8")
    cells = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| M")]
    rows = {row[0]: row for row in cells}
    assert list(rows) == IDS
    for claim_id, row in rows.items():
        statement = claim_records.statements()[claim_id]
        assert row[1] == statement.statement.replace("|", r"\|").replace("*", r"\*")
        assert row[2] == statement.expected or (statement.expected == "holds if" and row[2].startswith("holds if "))
        assert row[4] == "yes"
    words = [row[2].partition(" if")[1] or row[2] for row in cells]
    holds, limited, false = (words.count(word) for word in ("holds", " if", "false"))
    counts = f"{holds} hold, {limited} hold under a condition, and {false} are false"
    assert f"**Of {len(cells)} statements, {counts}.**" in text

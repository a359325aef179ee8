"""The generated Coq files: what they state, where they come from, and the record of what was checked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rdgraph.reports.claims import statements
from rdgraph.reports.coq import record
from rdgraph.reports.coq.sheets import (
    Library,
    Sheet,
    Theorem,
    beyond_coq,
    library_text,
    sheets,
    sheets_of,
    write_sheets,
)
from rdgraph.theory.equality.derivations import derivations
from tests.paths import ROOT

IDS = {sheet.name: sheet for sheet in sheets()}


def code(text: str) -> str:
    """A file without its comments."""
    return re.sub(r"\(\*.*?\*\)", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("name", IDS)
def test_no_proof_is_left_out(name: str) -> None:
    words = set(re.findall(r"\w+", code(IDS[name].text)))
    assert not words & {"Admitted", "admit", "Axiom", "Parameter", "Hypothesis", "Variable", "Conjecture", "Abort"}
    assert len(re.findall(r"^Qed\.$", IDS[name].text, re.MULTILINE)) == len(IDS[name].theorems) > 0
    for theorem in IDS[name].theorems:
        assert f"Print Assumptions {theorem.name}." in IDS[name].text


@pytest.mark.parametrize("library", Library)
def test_the_libraries_prove_their_lemmas(library: Library) -> None:
    words = re.findall(r"\w+", code(library_text(library)))
    assert not set(words) & {"Admitted", "admit", "Axiom", "Parameter", "Hypothesis", "Conjecture", "Abort"}
    assert words.count("Lemma") == words.count("Qed")


def test_four_fifths_of_the_claims_have_theorems() -> None:
    stated = {sheet.claim for sheet in sheets()}
    assert len(stated) >= 0.8 * len(statements())
    assert {claim for claim in statements() if beyond_coq(claim)} <= stated
    names = [sheet.name for sheet in sheets()]
    assert len(names) == len(set(names))


def test_every_line_of_every_derivation_is_a_theorem() -> None:
    theorems = {t.name for sheet in sheets() if sheet.claim.startswith("M1") for t in sheet.theorems}
    for name, chain in derivations().items():
        if name.startswith("bs-"):
            steps = {f"{name.replace('-', '_')}_{k}" for k in range(1, len(chain.lines))}
            assert steps <= theorems


def test_files_and_libraries_are_written(tmp_path: Path) -> None:
    paths = write_sheets(tmp_path, sheets_of("M1.1"))
    assert [p.name for p in paths] == ["M1_1_operators.v"]
    assert {p.stem for p in tmp_path.iterdir()} == {"M1_1_operators", *(library.value for library in Library)}
    assert paths[0].read_text(encoding="utf-8") == sheets_of("M1.1")[0].text


@pytest.mark.parametrize("name", IDS)
def test_the_record_is_that_of_the_present_text(name: str) -> None:
    """`make coq` renews it after coqc accepted the file."""
    assert record.recorded()[name] == record.fingerprint(IDS[name])


def test_the_record_has_no_other_files() -> None:
    assert set(record.recorded()) == set(IDS)


def test_a_changed_statement_loses_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert record.mark("M1.1") == record.WHOLE
    assert record.mark("M4.5") == record.PART
    (sheet,) = sheets_of("M1.1")
    first, *rest = sheet.theorems
    changed = Theorem(first.name, first.statement.replace(" - ", " + ", 1), first.proof)
    other = Sheet(sheet.claim, sheet.library, (changed, *rest), sheet.definitions)
    monkeypatch.setattr(record, "sheets_of", lambda claim: (other,))
    assert record.mark("M1.1") == ""


def test_the_page_has_every_mark_and_names_what_is_missing() -> None:
    page = (ROOT / "docs/measured/claims.md").read_text(encoding="utf-8")
    rows = {line.split(" ")[1]: line for line in page.splitlines() if line.startswith("| M")}
    for claim in statements():
        assert rows[claim].endswith(f"| {record.mark(claim)} |")
        if beyond_coq(claim):
            assert f"- {claim}: {beyond_coq(claim)}" in page

"""coqc accepts the generated files, with no axiom but those of the reals, and rejects changed statements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rdgraph.reports.coq.kernel import ALLOWED, axiom_names, check_sheet, check_sheets, find_coqc
from rdgraph.reports.coq.sheets import Library, Sheet, Theorem, sheets, sheets_of, write_sheets

needs_coq = pytest.mark.skipif(find_coqc() is None, reason="coqc is not installed; `make coq` installs it")


def sheet_of(claim: str, library: Library) -> Sheet:
    return next(one for one in sheets_of(claim) if one.library is library)


@needs_coq
def test_two_files_are_accepted(tmp_path: Path) -> None:
    chosen = [sheet_of("M1.1", Library.OPERATORS), sheet_of("M8.5", Library.RATIONALS)]
    results = check_sheets(tmp_path, chosen)
    assert [r.accepted for r in results] == [True, True]
    assert [r.axioms for r in results] == [frozenset(), frozenset()]


@needs_coq
def test_an_axiom_is_noticed(tmp_path: Path) -> None:
    assumed = Sheet("M8.5", Library.RATIONALS, (Theorem("claim", "1 == 2", "apply wish."),), ("Axiom wish : 1 == 2.",))
    (result,) = check_sheets(tmp_path, [assumed])
    assert not result.accepted
    assert result.axioms == {"wish"}


@needs_coq
def test_an_unfinished_proof_is_rejected(tmp_path: Path) -> None:
    wrong = Sheet("M8.5", Library.RATIONALS, (Theorem("claim", "1 == 2", "decide_by_computation."),))
    (result,) = check_sheets(tmp_path, [wrong])
    assert not result.accepted


def test_names_of_axioms() -> None:
    closed = "Closed under the global context\n"
    output = f"{closed}Axioms:\na : nat\nlong.name\n  : forall x, x\n{closed}"
    assert list(axiom_names(output)) == ["a", "long.name"]


@needs_coq
@pytest.mark.slow
def test_every_file_is_accepted(tmp_path: Path) -> None:
    results = check_sheets(tmp_path, sheets())
    assert {r.sheet.name: r.message for r in results if not r.accepted} == {}
    assert all(r.axioms <= ALLOWED[r.sheet.library] for r in results)
    assert any(r.axioms for r in results if r.sheet.library is Library.REALS)  # the report of axioms is read


#: Claim, library, theorem, and a change of a sign or coefficient that makes its statement false.
MUTANTS = (
    ("M1.1", Library.OPERATORS, "bs_blur_1", "(A - 1%:M)", "(A + 1%:M)"),
    ("M1.1", Library.OPERATORS, "bs_blur_2", "= (A *m H)", "= (- A *m H)"),
    ("M1.2", Library.OPERATORS, "bs_appendix_3", "2%:R", "3%:R"),
    ("M1.2", Library.OPERATORS, "bs_appendix_4", "2%:R *: 1%:M", "3%:R *: 1%:M"),
    ("M1.2", Library.OPERATORS, "bs_appendix_5", "(1%:M - laplacian A)", "(1%:M + laplacian A)"),
    ("M1.2", Library.OPERATORS, "bs_appendix_8", "(A - (A *m A))", "(A + (A *m A))"),
    ("M1.2", Library.OPERATORS, "bs_main_1", "+ ((A - (A *m A)) *m H)", "- ((A - (A *m A)) *m H)"),
    ("M1.3", Library.OPERATORS, "right_side_is_minus_L_squared", "= ((- laplacian A", "= ((laplacian A"),
    ("M1.3", Library.OPERATORS, "both_are_A_minus_A_squared", "(A - (A *m A))", "(A + (A *m A))"),
    ("M1.5", Library.OPERATORS, "euler_step_blurs_then_sharpens", "s * b - s + b", "s * b + s + b"),
    ("M2.1", Library.OPERATORS, "BS_symbol", "(- beta * lam ^+ 2)", "(beta * lam ^+ 2)"),
    ("M2.1", Library.OPERATORS, "FBstar_symbol", "beta + beta * lam", "beta + 2%:R * beta * lam"),
    ("M2.6", Library.OPERATORS, "FBstar_adds_growth", "+ beta *: H", "- beta *: H"),
    ("M8.2", Library.OPERATORS, "alpha_is_a_speed", "= alpha *:", "= - alpha *:"),
    ("M2.6", Library.REALS, "flow_of_FBstar", "exp (beta * T)", "exp (2 * beta * T)"),
    ("M3.7", Library.REALS, "a_vector_beta_amplifies_it", "(- 2)", "2"),
    ("M4.1", Library.REALS, "BS_constant", "(2 * alpha + 2 * beta)", "(2 * alpha + beta)"),
    ("M4.2", Library.REALS, "F_slope", "(2 * R + 1)", "(2 * R + (- 1))"),
    ("M4.2", Library.REALS, "Z_one_sided", "(1 / 3)", "(1 / 4)"),
    ("M8.10", Library.REALS, "eigenvalues_sum_to_the_trace", "= - alpha", "= alpha"),
    ("M4.1", Library.RATIONALS, "laplacian_reaches_2", "[[2]; [(-2)]]", "[[2]; [2]]"),
)  # fmt: skip


def mutated(claim: str, library: Library, name: str, old: str, new: str) -> Sheet:
    """The sheet with this theorem alone, its statement changed."""
    sheet = sheet_of(claim, library)
    theorem = next(t for t in sheet.theorems if t.name == name)
    assert theorem.statement.count(old) == 1, theorem.statement
    return replace(sheet, theorems=(replace(theorem, statement=theorem.statement.replace(old, new)),))


def test_every_mutant_changes_a_statement() -> None:
    assert len({(claim, name) for claim, _, name, _, _ in MUTANTS}) >= 20
    for mutant in MUTANTS:
        assert mutated(*mutant).text not in {one.text for one in sheets_of(mutant[0])}


@needs_coq
@pytest.mark.slow
def test_every_mutant_is_rejected_and_its_original_accepted(tmp_path: Path) -> None:
    """The originals are checked without the rest of their sheets, so that a rejection is due to the change."""
    changed = [mutated(*mutant) for mutant in MUTANTS]
    originals: dict[tuple[str, Library], list[Theorem]] = {}
    for claim, library, name, old, _ in MUTANTS:
        originals.setdefault((claim, library), []).extend(mutated(claim, library, name, old, old).theorems)
    alone = [replace(sheet_of(*key), theorems=tuple(theorems)) for key, theorems in originals.items()]
    assert {r.sheet.name: r.message for r in check_sheets(tmp_path, alone) if not r.accepted} == {}
    accepted = []
    for one in changed:
        write_sheets(tmp_path, [one])
        accepted += [one.theorems[0].statement] if check_sheet(one, tmp_path).accepted else []
    assert accepted == []

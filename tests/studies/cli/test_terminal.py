"""What the commands print on a terminal of 80 columns: nothing is clipped, the main thing comes first."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from rich.console import Console, RenderableType
from typer.testing import CliRunner

from gread.settings.presets import preset_names, presets
from gread.training.trainer import Progress, training_text
from rdgraph.errors import LanguageError, UnknownName
from rdgraph.reports.claims.claim_records import Claim, ClaimCheck
from rdgraph.reports.summary import HEADINGS, analyse
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from studies.cli import app as cli
from studies.cli import compare_commands, ledger_commands, preset_commands, printed_pages
from studies.cli.fitted_table import WIDE, RecordList
from studies.registered_studies import STUDIES
from tests.paths import ROOT

WIDTH = 80


def shown(page: RenderableType, width: int = WIDTH) -> list[str]:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    console.print(page)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def claim(name: str, status: str = "holds", **more: str) -> Claim:
    checks = (ClaimCheck("one is one", True, "1"), ClaimCheck("two is three", status == "holds"))
    words = {"condition": "", "witness": "", "expected": status} | more
    return Claim(
        name, "A title", "A statement of some length", "A source", (), status, words["condition"], checks,
        words["witness"], words["expected"], 0.5,
    )  # fmt: skip


# ---------------------------------------------------------------------- tables
@pytest.mark.parametrize("width", [200, WIDTH, 50])
def test_a_table_of_presets_keeps_every_digit(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=width)
    monkeypatch.setattr(preset_commands, "console", console)
    assert CliRunner().invoke(cli.app, ["presets", "--dataset", "cora"]).exit_code == 0
    words = set(console.file.getvalue().split())  # type: ignore[attr-defined]
    for preset in presets():
        if preset.dataset == "cora":
            assert preset.name in words
            assert f"{preset.config.training.learning_rate:.3g}" in words
    assert not any("…" in word for word in words)


def test_a_comparison_keeps_its_numbers() -> None:
    row = {
        "method": "a network with a long name", "mean": 81.25, "std": 1.5, "difference": -2.75,
        "difference_error": 0.5, "parameters": 1234567, "ms_per_epoch": 12.5, "published": 84.75,
    }  # fmt: skip
    words = " ".join(shown(compare_commands.contest_table([row, row]))).split()
    assert {"81.25", "1.50", "-2.75", "(0.50)", "1,234,567", "12.50", "84.75"} <= set(words)


def test_the_tally_of_the_ledger_keeps_its_headings() -> None:
    from studies.ledger.assessment import make_ledger
    from studies.ledger.entry import status_tally

    entries = make_ledger()
    lines = shown(ledger_commands.tally_table(entries))
    words = {word for line in lines for word in line.split()}
    for status, count in status_tally(entries).items():
        assert {*status.split(), str(count)} <= words
    assert max(map(len, lines)) <= WIDTH


def test_texts_are_a_list_where_a_table_would_be_squeezed() -> None:
    page = RecordList("Things", ("name", "sense"), [["first", "a long sentence " * 8], ["second", ""]])
    narrow, wide = shown(page), shown(page, WIDE)
    assert narrow[:2] == ["Things", "first"]
    assert narrow[2].startswith("  sense: a long sentence")
    assert narrow[-1] == "second"
    assert any(line.split() == ["name", "sense"] for line in wide)


@pytest.mark.parametrize("words", [["catalogue"], ["study"]])
def test_lists_of_names_have_all_of_them(words: list[str]) -> None:
    names = set(catalogue.entries) if words == ["catalogue"] else set(STUDIES)
    output = CliRunner(env={"COLUMNS": str(WIDTH)}).invoke(cli.app, words).stdout
    assert names <= {line.strip() for line in output.splitlines()}


# ---------------------------------------------------------------------- claims
def test_numbers_that_there_are_not_are_dashes() -> None:
    none = float("nan")
    row = {"method": "GCN", "mean": none, "std": none, "difference": none, "difference_error": none, "parameters": 1,
           "ms_per_epoch": none, "published": none}  # fmt: skip
    words = " ".join(shown(compare_commands.contest_table([row, row]))).split()
    assert "nan" not in words
    assert words.count("-") == 5
    assert "published" not in words
    told = Progress(epoch=1, epochs=2, loss=none, val_accuracy=none, batch=0, batches=1, seconds=0.5)
    assert training_text(told).startswith("epoch 1 of 2")
    assert "nan" not in training_text(told)


def test_a_claim_is_one_line_or_two() -> None:
    long = "a condition that is much longer than any line of a terminal could ever be " * 3
    lines = shown(
        printed_pages.claims_page(
            [claim("M1"), claim("M2", "holds if", condition=long), claim("M3", "false", witness="lam = 2")],
            evidence=False,
        )
    )
    assert [line.split()[:2] for line in (lines[0], lines[1], lines[3])] == [
        ["holds", "M1"],
        ["holds", "if"],
        ["false", "M3"],
    ]
    assert lines[2].strip().startswith("if a condition")
    assert lines[2].endswith("…")
    assert lines[4].strip() == "witness: lam = 2"
    assert lines[5].startswith("1 of 3 claims decided as recorded, 1.5 s; --evidence")


def test_what_was_not_decided_as_recorded_stands_out() -> None:
    line = shown(printed_pages.claims_page([claim("M1", "false", expected="holds")], evidence=False), 120)[0]
    assert line.endswith("NOT AS RECORDED (holds), 1 of 2 checks passed")


def test_evidence_has_all_the_rest() -> None:
    text = "\n".join(shown(printed_pages.claims_page([claim("M1", "false", witness="lam = 2")], evidence=True)))
    for words in (
        "A statement of some length",
        "A source",
        "witness: lam = 2",
        "ok one is one: 1",
        "failed two is three",
    ):
        assert words in text


# ---------------------------------------------------------------------- analyses
SCREEN = 36
LINES = ["BS", "F", "Z", "Brusselator", "GraphCON", "-alpha*L@H + beta*tanh(A@H)"]


@pytest.mark.parametrize("line", LINES)
def test_an_analysis_fits_one_screen(line: str) -> None:
    found = analyse(line)
    lines = shown(printed_pages.analysis_page(found))
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= WIDTH
    page = "\n".join(lines)
    for word in ("Piecewise", "has_source", "lipschitz_local", "{", "[["):
        assert word not in page
    assert not re.search(r"\d\.\d{6}", page)
    topics = [topic for topic, _ in found.headlines]
    assert topics[0] == "system"
    if not found.system.is_single:
        assert topics[1] == "patterns"
    assert all(any(text.startswith(f"│ {topic} ") for text in lines) for topic in topics)


def test_all_answers_have_headings_and_the_latex_comes_last() -> None:
    found = analyse("-alpha*L@H + beta*H*(1 - H)")
    lines = shown(printed_pages.analysis_page(found, everything=True))
    assert lines[-1] == str(found.answers["latex"])[-len(lines[-1]) :]
    assert "LaTeX" in lines
    assert max(map(len, lines)) <= WIDTH
    headings = {line[2:23].strip() for line in lines if line.startswith("  ") and line[2:3].strip()}
    assert {HEADINGS[key] for key in found.words if key in HEADINGS} <= headings
    assert not any(key in line for line in lines for key in HEADINGS if "_" in key)


def test_a_note_is_printed_once() -> None:
    """BS has one note for both normalisations, and for Euler and RK4."""
    rows = {heading: (text, note) for heading, text, note in analyse("BS").rows}
    assert rows["step limit, Euler"][1].count("grows at rate") == 1
    assert HEADINGS["step_limit_euler"] in rows["step limit, RK4"][1]
    assert rows["step limit, RK4"][0] == "2.785/(2*(alpha + beta))"


def test_several_fields_are_named() -> None:
    lines = "\n".join(shown(printed_pages.analysis_page(analyse("u' = -L@u + a - u; v' = -L@v + u - v"))))
    assert "linear in u, v" in lines
    assert "u = a, v = a (exact)" in lines


def test_an_undecided_existence_is_called_undecided() -> None:
    from dataclasses import replace

    from rdgraph.theory.global_existence import Existence

    found = analyse("BS")
    unknown = replace(found, results={**found.results, "existence": Existence(None, "too hard")})
    text = dict(unknown.headlines)["existence"]
    assert text.startswith("undecided")
    assert text.endswith("too hard")


@pytest.mark.parametrize(
    ("line", "is_proved"), [("BS", True), ("-alpha*L@H + beta*tanh(A@H)", True), ("GraphCON", False)]
)
def test_that_no_region_exists_is_said_where_it_is_proved(line: str, is_proved: bool) -> None:
    assert dict(analyse(line).headlines)["bounds"].startswith("proved") == is_proved


# ---------------------------------------------------------------------- names
def test_a_misspelt_name_of_the_catalogue_is_found() -> None:
    for wrong, meant in (("BSS", "BS"), ("gray-scot", "Gray-Scott"), ("difusion", "diffusion")):
        with pytest.raises(LanguageError, match=f"did you mean '{meant}' of the catalogue"):
            parse(wrong)
    with pytest.raises(LanguageError) as problem:
        parse("zzz*H")
    assert "catalogue" not in str(problem.value)


def test_very_many_known_names_are_not_all_listed() -> None:
    problem = str(UnknownName("preset", "paper/BS/coar", [p.name for p in presets()]))
    assert "did you mean 'paper/BS/cora'" in problem
    assert len(problem) < 500
    assert problem.endswith(f"and {len(presets()) - 12} others)")


@pytest.mark.parametrize(
    "words",
    [
        ["train", "--edges", "missing.csv", "--nodes", "missing.csv"],
        ["train", "--dataset", "karate", "--preset", "missing.toml"],
        ["train", "--resume", "--out", "missing"],
        ["ledger", "--results", "missing"],
        ["ledger", "--add", "missing.csv"],
        ["plot", "phase", "--graph", "file:missing.csv"],
        ["search", "--dataset", "karate", "--space", "missing.toml"],
    ],
)
def test_missing_files_are_errors(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["rdgraph", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "missing" in capsys.readouterr().err


# ---------------------------------------------------------------------- first words
def commands(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below a group, by its words."""
    for word, command in getattr(group, "commands", {}).items():
        yield f"{name} {word}".strip(), command
        yield from commands(command, f"{name} {word}")


def test_help_reads_well_on_80_columns() -> None:
    """Options have a name, a placeholder and a help text; the lists of commands are not cut off."""
    by_name = dict(commands(typer.main.get_command(cli.app)))
    assert {"study", "plot phase", "presets show"} <= set(by_name)
    for name in ("", *by_name):
        text = CliRunner().invoke(cli.app, [*name.split(), "--help"], env={"COLUMNS": "80"}).stdout
        assert max(map(len, text.splitlines())) <= 80
        assert not re.search(r"<[a-z]|\[default: \(|\w\.\.\.\n", text), name
    assert "[settings]" in CliRunner().invoke(cli.app, ["study", "--help"], env={"COLUMNS": "200"}).stdout
    assert "[[" not in CliRunner().invoke(cli.app, ["conform", "--help"]).stdout


def test_all_presets_fit_on_a_few_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=WIDTH)
    monkeypatch.setattr(preset_commands, "console", console)
    assert CliRunner().invoke(cli.app, ["presets"]).exit_code == 0
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) < 80
    names = {name.rpartition("/")[0] for name in preset_names()}
    assert names <= {word for line in lines for word in line.split()}


def test_the_first_words_need_no_library_for_mathematics() -> None:
    code = "import sys, studies.cli.app; print([m for m in ('sympy', 'numpy', 'torch') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "[]\n"
    code = "import sys; from gread.settings.presets import named_preset; named_preset('paper/BS/cora').config.toml(); "
    code += "print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "False\n"

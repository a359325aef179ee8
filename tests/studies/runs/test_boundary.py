"""The edge of the programs: what is shown as text, what stays a traceback, and texts that are printed as they are."""

from __future__ import annotations

import errno
import io
import math
import os

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console

from analysis.figure_files import plain
from analysis.gain_curves import response_figure
from gread.comparison import SPLITS, difference_error
from gread.settings.presets import Published
from rdgraph.errors import FileError, InvalidArgument, NotApplicable, UnknownName
from rdgraph.systems.parser import parse
from studies.benchmarks.accuracies import gap_to
from studies.cli import app as cli
from studies.cli.conform_commands import load_layer
from studies.cli.options import read_numbers
from studies.runs.boundary import reported, say
from studies.runs.uncertainty import agreed, decide, interval
from studies.training.choices import with_learned
from studies.training.training_summary import Summary

# ---------------------------------------------------------------------- errors
MISSING = "this command needs {}, which is not installed: pip install 'rdgraph[{}]'"


def _absent(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError("no", name=name)


@pytest.mark.parametrize(
    ("problem", "name", "text"),
    [
        (NotApplicable("expected [bold]x[/], got y"), "NotApplicable", "expected [bold]x[/], got y"),
        (UnknownName("study", "grdi", ["x"]), "UnknownName", "expected a study, got 'grdi' (known: x)"),
        (FileError("expected a file"), "FileError", "expected a file"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "PermissionError", "/x: Permission denied"),
        (OSError("odd"), "OSError", "odd"),
        (
            FileExistsError(errno.EEXIST, "File exists", "a"),
            "FileExistsError",
            "a: expected a folder, got a file; name another path",
        ),
        (MemoryError(), "MemoryError", "the memory is not enough; lower settings such as hidden"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 27199999999728 bytes."),
            "MemoryError",
            "the memory is not enough; lower settings such as hidden",
        ),
        (
            ModuleNotFoundError("no", name="torch.nn"),
            "MissingDependency",
            MISSING.format("torch", "torch"),
        ),
        (
            ModuleNotFoundError("no", name="pooch"),
            "MissingDependency",
            MISSING.format("pooch", "gread"),
        ),
    ],
)
def test_what_a_user_can_mend_is_shown_as_text(problem: Exception, name: str, text: str) -> None:
    shown = io.StringIO()
    with pytest.raises(SystemExit) as caught, reported(Console(file=shown, width=40, no_color=True)):
        raise problem
    assert caught.value.code == 2
    assert shown.getvalue() == f"error: {name}\n{text}\n"


@pytest.mark.parametrize(
    "problem",
    [ZeroDivisionError("a bug"), RuntimeError("a bug"), ModuleNotFoundError("no", name="jsno"), KeyError("x")],
)
def test_mistakes_of_the_program_keep_their_traceback(problem: Exception) -> None:
    with pytest.raises(type(problem)), reported(Console(file=io.StringIO())):
        raise problem


def test_the_command_line_has_that_edge(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "results.csv")

    monkeypatch.setattr(cli, "app", fails)
    with pytest.raises(SystemExit):
        cli.main()
    assert "results.csv: No space left on device" in capsys.readouterr().err


def test_what_a_shell_gives_twice_or_empty_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="alpha is given twice"):
        read_numbers(["alpha=1", "beta=2", "alpha=3"])
    with pytest.raises(InvalidArgument, match="the equation is empty"):
        with_learned(" ", ())
    with pytest.raises(InvalidArgument, match="Linear needs arguments"):
        load_layer("torch.nn:Linear")


# ---------------------------------------------------------------------- texts from outside
TEXTS = [r"$\frac{$", "$", "$$", r"a\$b", "[bold]x[/bold]", "[/]", "two\nlines", "\x00\x1b[31m", "trailing\\", "_x"]


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_printed_as_they_are(text: str) -> None:
    out = io.StringIO()
    say(Console(file=out, width=20), text)
    printable = "".join(c for c in out.getvalue() if c.isprintable() or c == "\n")
    assert printable.rstrip("\n") in (text, "".join(c for c in text if c.isprintable()))


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_drawn_letter_by_letter(text: str) -> None:
    """As wide as the same letters one after the other are: no formula was read."""
    figure = Figure()
    FigureCanvasAgg(figure)
    drawn = figure.text(0.5, 0.5, plain(text))
    figure.canvas.draw()
    shown, is_formula = drawn._preprocess_math(drawn.get_text())  # type: ignore[attr-defined]
    assert not is_formula
    assert shown == "".join(c if c.isprintable() else " " for c in text)


def test_names_of_coefficients_from_the_command_line_are_no_formulas() -> None:
    figure, _ = response_figure([parse("-alpha*L@H")], T=1.0, values={"alpha": 1.0, r"$\frac{$": 2.0})
    figure.draw_without_rendering()


# ---------------------------------------------------------------------- what a few samples say
def test_one_standard_error_for_reports_and_pages() -> None:
    """Of the difference of two means over ten splits, from samples and by the two programs that tell of it."""
    ours, theirs = np.random.default_rng(0).normal(80.0, 3.0, (2, SPLITS))
    error = math.hypot(*(values.std(ddof=1) / math.sqrt(len(values)) for values in (ours, theirs)))
    assert difference_error(ours.std(), 10, theirs.std(), 10) == pytest.approx(error, rel=1e-12)
    row = {"mean": ours.mean(), "std": ours.std(), "splits": 10, "paper": theirs.mean(), "paper_std": theirs.std()}
    assert gap_to(row, "paper").error == pytest.approx(error, rel=1e-12)
    rows = [{"split": k, "seed": 0, "test_accuracy": a / 100, "status": "ok"} for k, a in enumerate(ours)]
    published = Published("GREAD-BS", "cora", float(theirs.mean()), float(theirs.std()), "a table")
    assert Summary.of(rows, published).error == pytest.approx(error, rel=1e-9)


def test_no_sample_decides_nothing() -> None:
    assert interval(0, 0) == (0.0, 1.0)
    assert decide(np.array([], dtype=bool)) == agreed(np.array([], dtype=bool)) == "undecided"

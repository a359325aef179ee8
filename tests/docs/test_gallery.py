"""Every program of the gallery runs, without a warning and quickly, and leaves a figure with something drawn on it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from time import process_time

import pytest
from matplotlib.figure import Figure

from tests.paths import ROOT

EXAMPLES = ROOT / "docs" / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*/plot_*.py"))
#: Seconds of the processor that a program may take; what it loads counts for the first one.
LONGEST = 20.0


def test_there_is_a_gallery() -> None:
    assert len(PROGRAMS) >= 15
    assert len({program.stem for program in PROGRAMS}) == len(PROGRAMS)
    for folder in {program.parent for program in PROGRAMS}:
        assert (folder / "GALLERY_HEADER.rst").exists(), folder.name


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_begins_with_a_title(program: Path) -> None:
    title = re.match(r'"""\n(.+)\n(=+)\n\n\S', program.read_text(encoding="utf-8"))
    assert title is not None
    assert len(title[1]) == len(title[2])


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_runs_and_draws(program: Path) -> None:
    started = process_time()
    left = runpy.run_path(str(program))
    assert process_time() - started < LONGEST
    figures = [value for value in left.values() if isinstance(value, Figure)]
    assert figures
    for figure in figures:
        assert all(axes.has_data() for axes in figure.axes)

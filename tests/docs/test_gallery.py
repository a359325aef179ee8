"""The programs of the gallery have titles, and figures with something drawn on them; `make docs` runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.paths import ROOT

EXAMPLES = ROOT / "docs" / "start" / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*/plot_*.py"))


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


def test_a_figure_without_anything_drawn_is_refused(tmp_path: Path) -> None:
    """`make docs` runs the programs, with warnings as errors."""
    scrapers = pytest.importorskip(
        "docs.building.gallery_pictures", reason="`make test-slow` installs the site's tools"
    )
    drawn, empty = Figure(), Figure()
    drawn.subplots().plot([0.0, 1.0])
    empty.subplots()
    names = iter([tmp_path / "a.png", tmp_path / "b.png"])

    def scraped(**left: Figure) -> str:
        block = {"example_globals": left, "image_path_iterator": names, "src_file": "plot_it.py"}
        return str(scrapers.figures(("code", "", 1), block, {"src_dir": str(tmp_path)}))

    assert "a.png" in scraped(first=drawn)
    assert scraped(first=drawn) == ""
    with pytest.raises(ValueError, match=r"something drawn in every part of plot_it\.py"):
        scraped(second=empty)

"""Tutorials become notebooks, which print and draw what their pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("nbclient", reason="`make test-slow` installs what the site needs")
pytest.importorskip("ipykernel", reason="`make test-slow` installs what the site needs")

from nbformat.v4 import new_output

from docs.building import notebooks


def page(folder: Path, *examples: str) -> Path:
    path = folder / "page.md"
    path.write_text("# A page\n\n```python\n" + "\n".join(examples) + "\n\n```\n", encoding="utf-8")
    return path


def test_a_cell_ends_where_the_page_shows_something() -> None:
    text = "# Sums\n\nA [link](../away.md).\n\n```python\n>>> a = 1\n>>> a + 1\n2\n>>> a\n1\n\n```\n\nThe end.\n"
    made = notebooks.as_notebook(text)
    kinds = [(cell.cell_type, cell.source) for cell in made.cells[1:]]
    words = ("markdown", "# Sums\n\nA link.")
    assert kinds == [words, ("code", "a = 1\na + 1"), ("code", "a"), ("markdown", "The end.")]


def test_pictures_stand_behind_their_block() -> None:
    text = "```python\n>>> 1\n1\n\n```\n\nBetween.\n\n```python\n>>> 2\n2\n\n```\n"
    shown = notebooks.illustrated(text, {1: ["b.png"]}, "what")
    assert shown == text + "\n![what](b.png)\n"


def test_digits_that_depend_on_the_machine_are_shown_as_they_came_out() -> None:
    notebook = notebooks.as_notebook("```python\n>>> 2 / 3\n0.6...\n\n```\n")
    (cell,) = [cell for cell in notebook.cells if cell.metadata.get("want") == "0.6...\n"]
    cell.outputs = [new_output("execute_result", {"text/plain": "0.6666666666666666"})]
    shown = notebooks.with_outputs("```python\n>>> 2 / 3\n0.6...\n\n```\n", notebook)
    assert shown == "```python\n>>> 2 / 3\n0.6666666666666666\n\n```\n"


@pytest.mark.slow
def test_a_page_that_shows_something_else_is_refused(tmp_path: Path) -> None:
    wrong = page(tmp_path, ">>> 1 + 1", "3")
    with pytest.raises(ValueError, match=r"expected: '3\\n'\s+got:\s+'2\\n'"):
        notebooks.executed(wrong, tmp_path / "kept")
    assert not (tmp_path / "kept" / "page.ipynb").exists()


@pytest.mark.slow
def test_a_page_that_shows_what_comes_out_is_kept(tmp_path: Path) -> None:
    done = notebooks.executed(page(tmp_path, ">>> 1 + 1", "2", ">>> print('done')", "done"), tmp_path / "kept")
    assert all(cell.execution_count for cell in done.cells if cell.cell_type == "code")
    assert (tmp_path / "kept" / "page.ipynb").exists()


@pytest.mark.parametrize("tutorial", notebooks.tutorials(), ids=lambda p: p.stem)
def test_a_tutorial_shows_what_comes_out(tutorial: Path) -> None:
    """`make docs` runs it, and refuses a page that shows something else."""
    cells = notebooks.as_notebook(tutorial.read_text(encoding="utf-8")).cells
    assert sum(bool(cell.metadata.want) for cell in cells if cell.cell_type == "code") >= 5

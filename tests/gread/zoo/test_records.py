"""The records of all networks: every row of the paper's table has one, and all say where they come from."""

from __future__ import annotations

from gread.settings.model_records import FAMILIES, find_model, models
from gread.settings.presets import published_results
from rdgraph import parse


def test_every_row_of_the_papers_table_has_a_network() -> None:
    rows = {row.method for row in published_results() if not row.method.startswith("GREAD-")}
    assert len(rows) == 29
    found = [record.published for record in models.values() if record.published]
    assert set(found) == rows
    assert len(found) == len(rows)


def test_every_network_says_what_it_is() -> None:
    for name, record in models.items():
        assert record.name == name == record.settings.model
        assert record.family in FAMILIES
        assert record.source
        assert record.rule
        assert (record.settings.__doc__ or "").strip()
        assert (record.network.__doc__ or "").strip()
        if record.line:
            assert parse(record.line)


def test_titles_are_unique() -> None:
    titles = [record.title for record in models.values()]
    assert len(set(titles)) == len(titles)
    assert find_model("gread").family == "reaction-diffusion"

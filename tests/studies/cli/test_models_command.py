"""`rdgraph models`: one row for every network, numbers of parameters by hand, and the page made from it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from gread.settings.model_records import NETWORKS, ModelRecord, models, register_model, unregister_model
from gread.zoo.classical_networks import MLP, MLPSettings
from studies.cli import app as cli
from studies.cli import model_commands
from studies.cli.model_commands import cells, known_rows, model_row, model_rows, models_page, networks_file
from tests.paths import ROOT


def test_every_network_has_a_row() -> None:
    rows = json.loads(CliRunner().invoke(cli.app, ["models", "--json"]).stdout)
    assert {row["name"] for row in rows} == set(models)
    assert all(row["rule"] and row["source"] and row["parameters"] > 0 for row in rows if row["name"] != "labelprop")
    by = {row["name"]: row for row in rows}
    assert by["gcn"]["parameters"] == 1433 * 64 + 64 + 64 * 7 + 7
    assert by["gat"]["parameters"] == 1433 * 64 + 3 * 64 + 64 * 7 + 3 * 7
    assert by["h2gcn"]["parameters"] == 1433 * 64 + 7 * 64 * 7
    assert (by["gcn"]["published"], by["gread"]["published"]) == ("GCN", "")
    families = [row["family"] for row in rows]
    assert families.index("classical") < families.index("reaction-diffusion")


def test_the_file_of_networks_is_made_from_their_records() -> None:
    """`python -m studies.cli.model_commands` writes it."""
    assert networks_file() == NETWORKS.read_text(encoding="utf-8")


def test_networks_of_a_module_beyond_the_file_are_read_from_their_records(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = model_rows()
    known = {place: found for place, found in known_rows().items() if place != "gread.zoo.classical_networks"}
    monkeypatch.setattr(model_commands, "known_rows", lambda: known)
    assert model_rows() == rows


def test_the_table_names_them() -> None:
    shown = CliRunner().invoke(cli.app, ["models"])
    assert shown.exit_code == 0
    assert models.keys() <= {line.strip() for line in shown.stdout.splitlines()}


def test_the_page_is_current() -> None:
    """Made by `rdgraph models --markdown > docs/reference/models.md`."""
    page = models_page(model_rows())
    assert (ROOT / "docs" / "reference" / "models.md").read_text(encoding="utf-8") == page
    assert CliRunner().invoke(cli.app, ["models", "--markdown"]).stdout == page


def test_a_registered_network_is_listed() -> None:
    class OwnSettings(MLPSettings):
        model = "own-mlp"

    record = ModelRecord(
        "own-mlp", "Own | MLP", "simple", source="nobody", rule="H' = |H|", settings=OwnSettings, network=MLP
    )
    register_model(record)
    try:
        assert cells(model_row(record))[:2] == ["own-mlp", "Own | MLP"]
        assert "| `own-mlp` | Own \\| MLP |" in models_page(model_rows())
    finally:
        unregister_model("own-mlp")

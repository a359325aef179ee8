"""Seeded faults, correct variants and published layers: kept numbers reach their targets, some are measured anew."""

from __future__ import annotations

import ast
import json

import pytest

from studies.benchmarks.conform_faults import correct_variants, fault_row, seeded_faults, summary, variant_row
from studies.benchmarks.conform_page import page
from studies.benchmarks.conform_table import table_row
from studies.benchmarks.faulty_layers import RECIPES, faults
from studies.benchmarks.published_layers import our_layers, torch_geometric_layers
from tests.paths import ROOT


def kept(name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((ROOT / "docs" / name).read_text(encoding="utf-8"))
    return found


def test_the_kept_campaign_reaches_its_targets() -> None:
    """200 faults of ten layers, 95 % named in the first three hints, no false alarm on 200 variants, 10 s a check."""
    found = kept("conform_faults.json")
    told = found["summary"]
    assert told == summary(found["faults"], found["variants"])  # type: ignore[arg-type]
    assert isinstance(told, dict)
    assert told["layers"] >= 10
    assert told["faults"] >= 200
    assert told["named"] >= 0.95 * told["faults"]
    assert told["variants"] >= 200
    assert told["false_alarms"] == 0
    assert told["most_seconds"] <= 10
    assert len(found["faults"]) == len(list(seeded_faults()))  # type: ignore[arg-type]


def test_every_fault_is_another_program() -> None:
    for recipe in RECIPES:
        found = list(faults(recipe))
        texts = [fault.text for fault in found]
        assert len(set(texts)) == len(texts)
        assert all(ast.unparse(fault.tree) for fault in found)


def test_a_fault_and_a_variant() -> None:
    recipe, fault = next((r, f) for r, f in seeded_faults() if r.name == "bs" and f.kind == "sign")
    row = fault_row(recipe, fault)
    assert row["caught"]
    assert row["named"]
    assert variant_row(*next(v for v in correct_variants() if v[0].name == "bs" and v[4]))["conforms"]


@pytest.mark.slow
def test_a_sample_of_faults_and_variants() -> None:
    for recipe, fault in list(seeded_faults())[::23]:
        row = fault_row(recipe, fault)
        assert (row["caught"], row["named"]) == (True, True), row
    assert all(variant_row(*variant)["conforms"] for variant in list(correct_variants())[::27])


def test_the_verdicts_on_published_layers() -> None:
    pytest.importorskip("torch_geometric")
    rows = kept("conform.json")["rows"]
    assert isinstance(rows, list)
    names = [p.name for p in (*torch_geometric_layers(), *our_layers())]
    assert [row["layer"] for row in rows] == names
    published = next(p for p in torch_geometric_layers() if p.name == "GCNConv")
    row = table_row(published, "torch-geometric")
    assert row["verdicts"]["simple"]["conforms"]
    assert not row["verdicts"]["all"]["conforms"]
    assert "added where a node has none" in row["verdicts"]["all"]["hints"][0]
    old = next(r for r in rows if r["layer"] == "GCNConv")
    assert [v["conforms"] for v in old["verdicts"].values()] == [True, False]


def test_the_page_is_current() -> None:
    """Made by `python -m studies.benchmarks.conform_page`."""
    assert (ROOT / "docs/conform.md").read_text(encoding="utf-8") == page(
        kept("conform.json"), kept("conform_faults.json")
    )

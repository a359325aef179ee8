"""Columns of very different scales are named, with what to do about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rdgraph as rd
from gread import NodeData, karate
from gread.datasets.embedded import digits
from gread.datasets.splits import Masks


def table(*scales: float) -> NodeData:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(30, len(scales))) * scales
    masks = Masks(*np.zeros((3, 0, 30), dtype=bool))
    return NodeData(rd.generators.ring(30), x, draw.integers(0, 2, 30), masks)


def about_scales(data: NodeData) -> list[str]:
    return [text for text in data.warnings() if "scale" in text]


def test_columns_of_different_scales_are_named() -> None:
    (text,) = about_scales(table(1.0, 5e4, 0.3))
    assert "column 1" in text
    assert "column 2" in text
    assert "standardised()" in text
    assert about_scales(table(1.0, 5e4, 0.3).standardised()) == []


@pytest.mark.parametrize("data", [karate(), digits(), table(1.0), table(1.0, 20.0), table(1e6, 1e6), table(1.0, 0.0)])
def test_others_are_not(data: NodeData) -> None:
    assert about_scales(data) == []


def test_columns_of_a_file_are_called_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,target\na,b\n")
    (tmp_path / "n.csv").write_text("id,label,town,income,share\na,x,Ulm,30000,0.1\nb,y,Bonn,20000,0.2\n")
    files = tmp_path / "e.csv", tmp_path / "n.csv"
    (text,) = about_scales(NodeData.from_files(*files))
    assert "income: " in text
    assert "share: " in text
    assert "column" not in text.partition("(")[2]
    assert "standardise=True" in text
    assert about_scales(NodeData.from_files(*files, standardise=True)) == []

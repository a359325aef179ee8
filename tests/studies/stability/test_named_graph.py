"""Graphs by a word: sizes that no machine holds are refused before anything is built."""

from __future__ import annotations

import pytest

from rdgraph.errors import InvalidArgument
from studies.stability.named_graph import named_graph


@pytest.mark.parametrize(
    "word", ["ring:99999999999", "complete:100000", "grid:100000:100000", "barabasi-albert:9000000:50"]
)
def test_a_graph_that_fits_no_machine_is_refused(word: str) -> None:
    with pytest.raises(InvalidArgument, match="edges"):
        named_graph(word, 0)


@pytest.mark.parametrize(("word", "nodes"), [("watts-strogatz:100:4:0.01", 100), ("complete:30", 30), ("ring", 24)])
def test_others_are_built(word: str, nodes: int) -> None:
    assert named_graph(word, 0).num_nodes == nodes

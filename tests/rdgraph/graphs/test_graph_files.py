"""Graphs in files: every form reads back the graph that was written, and what is no graph is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdgraph import Graph
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.graphs.edges import EdgeKeys
from rdgraph.graphs.graph_files import read_networkx


def club(kind: type = nx.Graph) -> nx.Graph:
    return kind([("ulm", "bonn", {"weight": 2.0}), ("bonn", "rom", {"weight": 3.0}), ("rom", "rom", {"weight": 0.5})])


WRITERS = {
    "g.graphml": nx.write_graphml,
    "g.gexf": nx.write_gexf,
    "g.graphml.gz": nx.write_graphml,
    "g.edgelist": lambda graph, path: nx.write_weighted_edgelist(graph, path),
    "g.txt.gz": lambda graph, path: nx.write_weighted_edgelist(graph, path),
    "g.csv": lambda graph, path: nx.write_weighted_edgelist(graph, path, delimiter=","),
    "g.tsv": lambda graph, path: nx.write_weighted_edgelist(graph, path, delimiter="\t"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_graph_comes_back(tmp_path: Path, name: str) -> None:
    path, graph = tmp_path / name, club()
    WRITERS[name](graph, path)
    if name in ("g.csv", "g.tsv"):
        separator = "," if name == "g.csv" else "\t"
        path.write_text(separator.join(("source", "target", "weight")) + "\n" + path.read_text())
    found = Graph.from_file(path)
    assert found.names == ("ulm", "bonn", "rom")
    np.testing.assert_array_equal(found.adjacency.toarray(), Graph.from_networkx(graph).adjacency.toarray())
    assert (Graph.from_file(path, weight=None).weight == 1).all()


def test_only_files_that_say_so_are_directed(tmp_path: Path) -> None:
    nx.write_graphml(club(nx.DiGraph), tmp_path / "g.graphml")
    (tmp_path / "g.edges").write_text("% as downloaded\n0 1\n1 2\n")
    assert not Graph.from_file(tmp_path / "g.graphml").is_undirected
    assert Graph.from_file(tmp_path / "g.graphml", directed=False).is_undirected
    assert Graph.from_file(tmp_path / "g.edges").num_edges == 4
    assert Graph.from_file(tmp_path / "g.edges", directed=True).edge_index.tolist() == [[0, 1], [1, 2]]


def test_numbers_are_nodes_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("10,9\n9,2\n")
    assert Graph.from_file(tmp_path / "e.csv").names == ("2", "9", "10")
    (tmp_path / "e.csv").write_text("2,1\n1,0\n")
    assert Graph.from_file(tmp_path / "e.csv").names is None


BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;">{}]>
<graphml><graph edgedefault="undirected"><node id="a&lol2;"/></graph></graphml>"""


@pytest.mark.parametrize("suffix", [".graphml", ".gexf"])
@pytest.mark.parametrize("extra", ["", '<!ENTITY file SYSTEM "file:///etc/hostname">'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused_before_they_are_read(tmp_path: Path, suffix: str, extra: str, encoding: str) -> None:
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(BOMB.format(extra).encode(encoding))
    with pytest.raises(FileError, match="DOCTYPE"):
        read_networkx(path)
    packed = tmp_path / f"bomb{suffix}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(FileError, match="DOCTYPE"):
        read_networkx(packed)


@pytest.mark.parametrize(
    ("name", "text", "needle"),
    [
        ("g.graphml", "source,target\n0,1\n", "is not XML"),
        ("g.graphml", "<html></html>", "is not a graphml file"),
        ("g.gexf", "<graphml></graphml>", "is not a gexf file"),
        ("g.graphml.gz", "plain", "cannot be unpacked"),
        ("g.dat", "0 1", "cannot tell what .* holds.*graphml"),
        ("g.csv", "from,to\na,b\n", "line 1: expected a column 'source'"),
        ("g.csv", "source,target,weight\na,b,-1\n", "line 2, column 'weight': expected a finite weight"),
        ("g.csv", "0,1,1\n1,0,2\n", "duplicates='sum'"),
        ("g.edgelist", "a b\nb\n", "line 2: expected 2 cells"),
        ("g.edgelist", "", "line 1: expected a header"),
    ],
)
def test_what_is_no_graph_is_refused_in_one_line(tmp_path: Path, name: str, text: str, needle: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(FileError, match=needle) as problem:
        Graph.from_file(tmp_path / name)
    assert "\n" not in str(problem.value)
    with pytest.raises(FileError, match="check its name"):
        Graph.from_file(tmp_path / f"none{name[1:]}" if "dat" not in name else tmp_path / "none.csv")


EDGES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=12)
COMBINED = {"sum": sum, "mean": lambda w: sum(w) / len(w), "max": max, "first": lambda w: w[0]}


@given(EDGES, st.sampled_from(sorted(COMBINED)), st.booleans())
def test_duplicates_are_combined_pair_by_pair(edges: list[tuple[int, int, int]], rule: str, directed: bool) -> None:
    """Against dictionaries: one list of weights a pair, of an unordered pair where edges go both ways."""
    weights: dict[tuple[int, int], list[int]] = {}
    for a, b, w in edges:
        weights.setdefault((a, b) if directed else (min(a, b), max(a, b)), []).append(w)
    dense = np.zeros((5, 5))
    for (a, b), found in weights.items():
        dense[b, a] = COMBINED[rule](found)
        if not directed:
            dense[a, b] = dense[b, a]
    pairs = np.array([edge[:2] for edge in edges]).T
    keys = EdgeKeys.of(pairs, 5, both_ways=not directed)
    made = Graph.from_keys(keys, [edge[2] for edge in edges], duplicates=rule)
    np.testing.assert_allclose(made.adjacency.toarray(), dense, rtol=1e-12)
    assert directed or (made.adjacency.toarray() == made.adjacency.toarray().T).all()
    plain = Graph.from_keys(EdgeKeys.of(pairs, 5, both_ways=not directed), None, duplicates=rule).adjacency.toarray()
    counts = {pair: len(found) if rule == "sum" else 1 for pair, found in weights.items()}
    assert all(plain[b, a] == count for (a, b), count in counts.items())


def test_a_loop_is_no_repetition_of_itself() -> None:
    keys = EdgeKeys.of(np.array([[0, 1], [0, 0]]), 2, both_ways=True)
    assert Graph.from_keys(keys, [5.0, 2.0], duplicates="error").adjacency.toarray().tolist() == [[5, 2], [2, 0]]
    keys = EdgeKeys.of(np.array([[0, 1], [1, 0]]), 2, both_ways=True)
    with pytest.raises(InvalidArgument, match="expected every edge once"):
        Graph.from_keys(keys, [1.0, 1.0], duplicates="error")

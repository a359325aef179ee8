"""Your own graph: csv files, PyTorch Geometric, networkx, scipy, and errors that name the row."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from gread.datasets.interchange import encode_labels
from gread.datasets.node_data import NodeData
from gread.datasets.splits import Masks
from rdgraph.errors import FileError, InvalidArgument

EDGES = "source,target\nann,bob\nbob,cat\ncat,ann\ncat,dan\n"
NODES = """id,label,split_1,age,split_0,height
ann,red,train,31,train,1.5
bob,blue,val,27,train,1.75
cat,red,test,44,val,-2
dan,,,5,,0.25
eve,green,train,61,test,1e-3
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Two files with the given texts, as arguments of `NodeData.from_files`."""

    def files(edges: str = EDGES, nodes: str = NODES) -> tuple[Path, Path]:
        paths = tmp_path / "edges.csv", tmp_path / "nodes.csv"
        for path, text in zip(paths, (edges, nodes), strict=True):
            path.write_bytes(text.encode())
        return paths

    return files


# ---------------------------------------------------------------------- files
def test_two_files_become_a_data_set(write: Any) -> None:
    paths = write()
    data = NodeData.from_files(*paths)
    assert data.graph.names == ("ann", "bob", "cat", "dan", "eve")
    joined = np.zeros((5, 5))
    for u, v in ((0, 1), (1, 2), (2, 0), (2, 3)):
        joined[u, v] = joined[v, u] = 1
    assert np.array_equal(data.graph.adjacency.toarray(), joined)
    assert data.meta.classes == ("blue", "green", "red")
    assert data.y.tolist() == [2, 0, 2, -1, 1]
    np.testing.assert_array_equal(
        data.x, np.array([[31, 1.5], [27, 1.75], [44, -2], [5, 0.25], [61, 1e-3]], dtype=np.float32)
    )
    assert data.masks.train.astype(int).tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 1]]
    assert data.masks.val.astype(int).tolist() == [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0]]
    assert data.masks.test.astype(int).tolist() == [[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]
    assert data.meta.split == "columns of nodes.csv"
    assert data.meta.sources == tuple((p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in paths)


def test_direction_weights_and_columns_that_are_not_used(write: Any) -> None:
    edges = "weight,target,kind,source\n2,bob,x,ann\n0.5,ann,y,cat\n2,bob,x,ann\n3,dan,z,dan\n"
    paths = write(edges)
    plain = NodeData.from_files(*paths)
    assert plain.graph.adjacency.toarray()[:3, :3].tolist() == [[0, 2, 0.5], [2, 0, 0], [0.5, 0, 0]]
    assert plain.graph.adjacency[3, 3] == 3
    assert plain.meta.notes == ("Columns of edges.csv that were not used: kind.",)
    assert plain.meta.variant == (("undirected", "true"),)
    directed = NodeData.from_files(*paths, directed=True)
    assert directed.graph.edge_index.tolist() == [[2, 0, 3], [0, 1, 3]]  # a target collects from its source
    assert directed.meta.variant == (("undirected", "false"),)
    counted = NodeData.from_files(*paths, weight=None)
    assert (counted.graph.weight == 1).all()
    assert counted.meta.notes == ("Columns of edges.csv that were not used: weight, kind.",)


def test_both_directions_in_the_file_are_one_edge(write: Any) -> None:
    paths = write("source,target\nann,bob\nbob,ann\nann,bob\n")
    assert NodeData.from_files(*paths).graph.weight.tolist() == [1, 1]


def test_names_of_columns_can_be_chosen(write: Any) -> None:
    nodes = "name,colour,age,note\na,1,3,tall\nb,10,4,short\nc,9,5,\n"
    paths = write("source,target,strength\na,b,2\nb,c,3\n", nodes)
    data = NodeData.from_files(*paths, id="name", label="colour", features=["age"], weight="strength")
    assert data.meta.classes == ("1", "9", "10")
    assert data.y.tolist() == [0, 2, 1]
    assert data.x.tolist() == [[3], [4], [5]]
    assert data.graph.weight.tolist() == [2, 2, 3, 3]
    assert data.meta.notes == ("Columns of nodes.csv that were not used: note.",)
    assert data.num_splits == 0
    unlabelled = NodeData.from_files(*paths, id="name", label=None, features=["age"])
    assert unlabelled.y.tolist() == [-1, -1, -1]


def test_numbered_nodes_without_features(write: Any) -> None:
    data = NodeData.from_files(*write("source,target\n0,1\n", "id,label\n0,a\n1,b\n2,a\n"))
    assert data.graph.names is None
    assert data.is_sparse
    assert np.array_equal(data.x.toarray(), np.eye(3))
    assert data.meta.notes == ("No features were given: every node carries its own unit vector.",)


def test_masks_replace_the_columns_and_stratified_follows(write: Any) -> None:
    own = Masks([1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0])
    data = NodeData.from_files(*write(), masks=own)
    assert data.num_splits == 1
    assert data.meta.split == ""
    assert not data.stratified(2).masks.covered[:, 3].any()


def test_spreadsheets_write_a_byte_order_mark_carriage_returns_and_blank_lines(write: Any) -> None:
    edges = "\ufeff" + EDGES.replace("\n", "\r\n") + "\r\n"
    nodes = NODES.replace("ann,red", '"ann", red').replace("\ncat", "\n\ncat")
    data = NodeData.from_files(*write(edges, nodes))
    assert data.graph.num_edges == 8
    assert data.y.tolist() == [2, 0, 2, -1, 1]


WRONG_FILES = [
    # edges
    (EDGES + "dan,zoe\n", NODES, "edges.csv, line 6, column 'target': expected the id of a node, got 'zoe'"),
    (EDGES.replace("bob,cat", "Bob,cat"), NODES, "line 3, column 'source': expected the id of a node, got 'Bob'"),
    ("from,target\nann,bob\n", NODES, "edges.csv, line 1: expected a column 'source', got the columns from, target"),
    ("source;target\nann;bob\n", NODES, "edges.csv, line 1: expected a column 'source'.*separate the cells by commas"),
    ("", NODES, "edges.csv, line 1: expected a header, got an empty file"),
    ("source,target\n", NODES, "edges.csv, line 2: expected a row for every edge, got the end of the file"),
    (EDGES + "ann\n", NODES, "edges.csv, line 6: expected 2 cells, one per column, got 1 cells"),
    (EDGES + "\n\nann\n", NODES, "edges.csv, line 8: expected 2 cells"),
    ("source,target,weight\nann,bob,two\n", NODES, "edges.csv, line 2, column 'weight': .*weight >= 0, got 'two'"),
    ("source,target,weight\nann,bob,-1\n", NODES, "line 2, column 'weight': expected a finite weight >= 0, got '-1'"),
    ("source,target,weight\nann,bob,nan\n", NODES, "line 2, column 'weight': expected a finite weight >= 0, got 'nan'"),
    ("source,target,weight\nann,bob,\n", NODES, "line 2, column 'weight': .* got an empty cell"),
    (
        "source,target,weight\nann,bob,1\nbob,cat,1\nbob,ann,2\n", NODES,
        "edges.csv, line 4: expected the weight 1 of the same edge in line 2, got 2; .*duplicates=.*directed=True",
    ),
    # nodes
    (EDGES, NODES + "ann,red,,1,,1\n", "nodes.csv, line 7, column 'id': .*got 'ann' again, first in line 2"),
    (EDGES, NODES + ",red,,1,,1\n", "nodes.csv, line 7, column 'id': .*got an empty cell"),
    (EDGES, NODES.replace("27", "old"), "nodes.csv, line 3, column 'age': expected a finite number, got 'old'"),
    (EDGES, NODES.replace("27", "nan"), "nodes.csv, line 3, column 'age': expected a finite number, got 'nan'"),
    (EDGES, NODES.replace("27", ""), "nodes.csv, line 3, column 'age': .*got an empty cell"),
    (EDGES, NODES.replace("0.25", "1e39"), "nodes.csv, line 5, column 'height': .*got '1e39'"),
    (EDGES, NODES.replace("1.75", "inf"), "nodes.csv, line 3, column 'height': .*got 'inf'"),
    (EDGES, NODES.replace("train", "val"), "nodes.csv, line 2, column 'split_0': expected train in some row"),
    (EDGES, NODES.replace("label", "lable", 1), "nodes.csv, line 1: expected a column 'label'.*did you mean 'lable'"),
    (EDGES, NODES.replace(",val,27", ",dev,27"), "line 3, column 'split_1': expected train, val, test .*got 'dev'"),
    (EDGES, NODES.replace("age", "height"), "nodes.csv, line 1: expected every column once, got 'height' twice"),
    (EDGES, NODES.replace("age", ""), "nodes.csv, line 1: expected a name for every column, got none for column 4"),
    (EDGES, NODES.replace("bob,blue", "bob,blue,"), "nodes.csv, line 3: expected 6 cells, one per column, got 7 cells"),
    (EDGES, "id,label\n", "nodes.csv, line 2: expected a row for every node, got the end of the file"),
    (EDGES, NODES.replace("bob", '"bob'), "nodes.csv, line 3: expected a csv file in UTF-8.*close its quotes"),
    (EDGES, NODES.replace("red", "r" * 200_000, 1), "nodes.csv, line 2: expected a csv file.*shorten its cells"),
]  # fmt: skip


@pytest.mark.parametrize(("edges", "nodes", "text"), WRONG_FILES)
def test_an_error_names_file_line_and_column(write: Any, edges: str, nodes: str, text: str) -> None:
    with pytest.raises(FileError, match=text):
        NodeData.from_files(*write(edges, nodes))


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (NODES.replace("green", "-1").replace("red", "0").replace("blue", "1"), "expected labels other than -1"),
        (NODES.replace("dan,,,", "dan,,train,"), "split 1: node 'dan' has none"),
    ],
)
def test_contents_that_make_no_data_set_are_refused(write: Any, nodes: str, text: str) -> None:
    with pytest.raises(InvalidArgument, match=text):
        NodeData.from_files(*write(EDGES, nodes))


def test_other_encodings_are_refused(write: Any) -> None:
    edges, nodes = write()
    nodes.write_bytes(NODES.replace("ann", "änn").encode("latin-1"))
    with pytest.raises(FileError, match=r"nodes.csv, line 1: expected a csv file in UTF-8"):
        NodeData.from_files(edges, nodes)


def test_a_row_over_two_lines_is_named_by_its_first(write: Any) -> None:
    nodes = 'id,label,age\nann,"two\nlines",1\nbob,x,1\ncat,"two\nlines",old\n'
    with pytest.raises(FileError, match=r"nodes.csv, line 5, column 'age'"):
        NodeData.from_files(*write(EDGES, nodes))


@pytest.mark.slow
def test_a_hundred_thousand_rows_take_seconds(write: Any) -> None:
    rng = np.random.default_rng(0)
    n = 100_000
    values = rng.integers(0, 100, (n, 5)).tolist()
    nodes = "id,label,split,a,b,c,d\n" + "".join(
        f"n{k},{v[0] % 7},{('train', 'val', 'test')[k % 3]},{v[1]},{v[2]},{v[3]},{v[4]}\n" for k, v in enumerate(values)
    )
    edges = "source,target\n" + "".join(f"n{k},n{(k * 7 + 1) % n}\n" for k in range(n))
    paths = write(edges, nodes)
    start = time.process_time()
    data = NodeData.from_files(*paths)
    assert time.process_time() - start < 15  # 2 s on an idle core
    assert data.x.tolist()[-1] == values[-1][1:]
    assert data.num_classes == 7
    assert data.masks.train.sum() == 33334


# ---------------------------------------------------------------------- labels
@given(st.lists(st.sampled_from(["b", "a", "10", "", "Z"]), min_size=1))
def test_labels_are_names_in_order(values: list[str]) -> None:
    y, classes = encode_labels(values)
    assert list(classes) == sorted(set(values) - {""}, key=int if set(values) <= {"10", ""} else str)
    assert [classes[k] if k >= 0 else "" for k in y] == values


def test_numbers_are_sorted_as_numbers_and_equal_ones_are_one_class() -> None:
    y, classes = encode_labels([10, "9", 9.0, None, float("nan"), "1e1", 0])
    assert classes == ("0", "9", "10")
    assert y.tolist() == [2, 1, 1, -1, -1, 2, 0]
    assert encode_labels(["nan", "2", "10"])[1] == ("10", "2", "nan")  # a class of that name, so all are names


# ---------------------------------------------------------------------- PyTorch Geometric
def pyg(**changes: Any) -> SimpleNamespace:
    torch = pytest.importorskip("torch")
    eye = torch.eye(3, dtype=torch.bool)
    fields = {
        "edge_index": torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        "num_nodes": 3,
        "x": torch.tensor([[0.5, 0.0], [0.0, 2.0], [1.0, 1.0]]),
        "y": torch.tensor([0, 1, 0]),
        "train_mask": eye[0],
        "val_mask": eye[1],
        "test_mask": eye[2],
    }
    return SimpleNamespace(**{**fields, **changes})


def test_pyg_with_one_split() -> None:
    data = NodeData.from_pyg(pyg())
    assert data.x.tolist() == [[0.5, 0], [0, 2], [1, 1]]
    assert data.y.tolist() == [0, 1, 0]
    assert data.graph.degree.tolist() == [1, 2, 1]
    assert data.masks.test.tolist() == [[False, False, True]]
    assert data.meta.split == "masks of the PyTorch Geometric data"


def test_pyg_with_several_splits_and_one_test_mask_for_all() -> None:
    torch = pytest.importorskip("torch")
    train = torch.tensor([[True, False], [False, True], [False, False]])
    data = NodeData.from_pyg(pyg(train_mask=train, val_mask=train.flip(1), y=torch.tensor([[0], [1], [0]])))
    assert data.num_splits == 2
    assert data.masks.train.tolist() == [[True, False, False], [False, True, False]]
    assert data.masks.val.tolist() == [[False, True, False], [True, False, False]]
    assert data.masks.test.tolist() == [[False, False, True]] * 2


def test_pyg_without_masks_labels_or_features() -> None:
    bare = pyg(train_mask=None, val_mask=None, test_mask=None, y=None, x=None)
    data = NodeData.from_pyg(bare)
    assert data.num_splits == 0
    assert data.y.tolist() == [-1, -1, -1]
    assert np.array_equal(data.x.toarray(), np.eye(3))


def test_pyg_sparse_features_stay_sparse() -> None:
    data = NodeData.from_pyg(pyg(x=pyg().x.to_sparse()))
    assert data.is_sparse
    assert data.x.toarray().tolist() == [[0.5, 0], [0, 2], [1, 1]]


def test_pyg_that_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidArgument, match="got no val_mask; pass masks="):
        NodeData.from_pyg(pyg(val_mask=None))
    with pytest.raises(InvalidArgument, match=r"expected a train_mask of shape \(3,\) or \(3, splits\), got \(2,\)"):
        NodeData.from_pyg(pyg(train_mask=torch.ones(2, dtype=torch.bool)))
    with pytest.raises(InvalidArgument, match=r"labels \(3,\).*\(3, 2\)"):
        NodeData.from_pyg(pyg(y=torch.zeros(3, 2, dtype=torch.long)))
    with pytest.raises(InvalidArgument, match="expected an object with edge_index"):
        NodeData.from_pyg(SimpleNamespace())


# ---------------------------------------------------------------------- networkx, scipy
def coloured() -> nx.Graph:
    graph = nx.Graph([("a", "b", {"weight": 2.0}), ("b", "c")])
    nx.set_node_attributes(graph, {"a": "red", "b": "blue"}, "label")
    nx.set_node_attributes(graph, {"a": 1, "b": 2, "c": 3}, "age")
    nx.set_node_attributes(graph, {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.5, 0.5]}, "place")
    return graph


def test_networkx_attributes() -> None:
    data = NodeData.from_networkx(coloured(), features=["place", "age"])
    assert data.x.tolist() == [[1, 0, 1], [0, 1, 2], [0.5, 0.5, 3]]
    assert data.y.tolist() == [1, 0, -1]
    assert data.meta.classes == ("blue", "red")
    assert data.graph.names == ("a", "b", "c")
    assert data.graph.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]
    assert NodeData.from_networkx(coloured(), features="age", weight=None).graph.weight.tolist() == [1] * 4


def test_networkx_that_is_refused() -> None:
    with pytest.raises(
        InvalidArgument, match="nodes with the attribute 'colour', got label, age, place; name it with label=NAME"
    ):
        NodeData.from_networkx(coloured(), label="colour")
    with pytest.raises(InvalidArgument, match=r"node 'c', attribute 'label': expected a category.*missing='mean'"):
        NodeData.from_networkx(coloured(), features="label", label=None)
    with pytest.raises(InvalidArgument, match="nodes with the attribute 'size'"):
        NodeData.from_networkx(coloured(), features="size")
    graph = coloured()
    graph.nodes["b"]["place"] = [1.0]
    with pytest.raises(InvalidArgument, match=r"node 'b', attribute 'place': expected 2 numbers.*got \[1.0\]"):
        NodeData.from_networkx(graph, features="place")
    assert NodeData.from_networkx(coloured(), label=None, features="age").y.tolist() == [-1, -1, -1]


FIRM = {"label": "shop", "revenue": 2.5, "staff": "7", "country": "it", "listed": True, "place": [1.0, 2.0]}


def firms(kind: type = nx.Graph) -> nx.Graph:
    """Two firms with every kind of attribute, one of them with gaps, and an attribute that is no feature."""
    graph = kind([("a", "b", {"weight": 2.0})])
    graph.nodes["a"].update(FIRM, viz={"x": 1})
    graph.nodes["b"].update(FIRM, label="farm", country=None, staff=float("nan"), listed=False, viz={"x": 2})
    return graph


def test_all_attributes_of_networkx_are_features_as_those_of_a_file(tmp_path: Path) -> None:
    data = NodeData.from_networkx(firms(), missing="mean")
    assert data.preparation is not None
    assert data.preparation.feature_names == ("revenue", "staff", "country=it", "listed", "place[0]", "place[1]")
    assert data.x.tolist() == [[2.5, 7, 1, 1, 1, 2], [2.5, 7, 0, 0, 1, 2]]
    assert data.meta.notes[0] == "Attributes of the nodes that were not used: viz."
    edges, nodes = tmp_path / "e.csv", tmp_path / "n.csv"
    edges.write_text("source,target,weight\na,b,2\n")
    nodes.write_text("id,label,revenue,staff,country,listed\na,shop,2.5,7,it,1\nb,farm,2.5,,,0\n")
    same = NodeData.from_files(edges, nodes, missing="mean")
    np.testing.assert_array_equal(same.x, data.x[:, :4])
    np.testing.assert_array_equal(same.y, data.y)
    np.testing.assert_array_equal(same.graph.weight, data.graph.weight)
    with pytest.raises(InvalidArgument, match=r"node 'b', attribute '(country|staff)': expected"):
        NodeData.from_networkx(firms())
    with pytest.raises(InvalidArgument, match="node 'a', attribute 'viz': expected a number, a vector or a word"):
        NodeData.from_networkx(firms(), features="viz")


def test_networkx_features_are_prepared_as_those_of_another_graph() -> None:
    first = NodeData.from_networkx(firms(), missing="mean", standardise=True)
    graph = firms()
    graph.nodes["a"]["country"] = "fr"
    with pytest.warns(UserWarning, match=r"'country'.*'fr' \(1 row\)"):
        again = NodeData.from_networkx(graph, preparation=first.preparation)
    assert again.x[:, 2].tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(again.x[:, [0, 1, 3, 4, 5]], first.x[:, [0, 1, 3, 4, 5]])


def test_splits_may_be_attributes() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "train", 1: "val", 2: "test"}, "split")
    nx.set_node_attributes(graph, {0: "a", 1: "b", 2: "a"}, "label")
    data = NodeData.from_networkx(graph)
    assert (data.num_splits, data.masks.val.tolist()) == (1, [[False, True, False]])
    assert data.is_sparse  # the split is no feature


def test_one_rule_of_direction() -> None:
    """As the source says, and `directed` overrides it."""
    both = nx.DiGraph([("a", "b", {"weight": 1.0}), ("b", "a", {"weight": 3.0}), ("a", "a", {"weight": 5.0})])
    nx.set_node_attributes(both, {"a": 0, "b": 1}, "label")
    kept = NodeData.from_networkx(both)
    assert not kept.graph.is_undirected
    assert kept.graph.adjacency.toarray().tolist() == [[5, 3], [1, 0]]
    with pytest.raises(InvalidArgument, match=r"one weight for both directions.*duplicates="):
        NodeData.from_networkx(both, directed=False)
    for rule, weight in (("sum", 4.0), ("mean", 2.0), ("max", 3.0), ("first", 1.0)):
        made = NodeData.from_networkx(both, directed=False, duplicates=rule).graph
        assert made.adjacency.toarray().tolist() == [[5, weight], [weight, 0]], rule
    data = SimpleNamespace(edge_index=[[0], [1]], num_nodes=2, x=[[1.0], [2.0]], y=[0, 1])
    assert not NodeData.from_pyg(data).graph.is_undirected
    assert NodeData.from_pyg(data, directed=False).graph.is_undirected


# ---------------------------------------------------------------------- GraphML, GEXF, other lists
@pytest.mark.parametrize("name", ["firms.graphml", "firms.gexf", "firms.graphml.gz"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_a_graph_file_is_its_networkx_graph(tmp_path: Path, name: str, kind: type) -> None:
    graph = firms(kind)
    for _, values in graph.nodes(data=True):
        for attribute in [key for key, value in values.items() if isinstance(value, dict | list) or value is None]:
            del values[attribute]
        values["kind"] = values.pop("label")
    (nx.write_gexf if "gexf" in name else nx.write_graphml)(graph, tmp_path / name)
    data = NodeData.from_files(tmp_path / name, label="kind", missing="mean")
    expected = NodeData.from_networkx(graph, label="kind", missing="mean")
    assert data.preparation is not None
    assert expected.preparation is not None
    order = [data.preparation.feature_names.index(one) for one in expected.preparation.feature_names]
    np.testing.assert_array_equal(data.x[:, order], expected.x)
    np.testing.assert_array_equal(data.graph.adjacency.toarray(), expected.graph.adjacency.toarray())
    assert (data.meta.name, data.meta.classes) == ("firms", ("farm", "shop"))
    assert data.graph.is_undirected == (kind is nx.Graph)
    with pytest.raises(FileError, match=r"firms.*expected nodes with the attribute 'label', got"):
        NodeData.from_files(tmp_path / name)


def test_nodes_of_a_table_join_edges_of_any_file(write: Any, tmp_path: Path) -> None:
    edges, nodes = write()
    expected = NodeData.from_files(edges, nodes).graph
    graph = nx.Graph([("ann", "bob"), ("bob", "cat"), ("cat", "ann"), ("cat", "dan")])
    nx.write_graphml(graph, tmp_path / "e.graphml")
    nx.write_edgelist(graph, tmp_path / "e.edgelist")
    (tmp_path / "e.tsv").write_text(EDGES.replace(",", "\t"))
    (tmp_path / "n.tsv").write_text(NODES.replace(",", "\t"))
    for pair in (("e.graphml", nodes), ("e.edgelist", nodes), ("e.tsv", tmp_path / "n.tsv")):
        found = NodeData.from_files(tmp_path / pair[0], pair[1])
        np.testing.assert_array_equal(found.graph.edge_index, expected.edge_index)
        assert found.graph.names == expected.names
    with pytest.raises(FileError, match=r"e.graphml holds a graph with its nodes; pass it as edges= alone"):
        NodeData.from_files(edges, tmp_path / "e.graphml")
    with pytest.raises(InvalidArgument, match="file of nodes"):
        NodeData.from_files(edges)
    with pytest.raises(FileError, match=r"cannot tell what .*e.xlsx holds.*.graphml or .gexf.*.csv"):
        NodeData.from_files(tmp_path / "e.xlsx", nodes)


@pytest.mark.parametrize(("rule", "weights"), [("sum", [3, 5]), ("mean", [1.5, 5]), ("max", [2, 5]), ("first", [1, 5])])
def test_weights_of_a_transaction_table_are_combined(write: Any, rule: str, weights: list[float]) -> None:
    paths = write("source,target,amount\nann,bob,1\nbob,ann,2\ncat,cat,5\n")
    adjacency = NodeData.from_files(*paths, weight="amount", duplicates=rule).graph.adjacency
    assert [adjacency[0, 1], adjacency[2, 2]] == weights
    assert adjacency[1, 0] == adjacency[0, 1]
    directed = NodeData.from_files(*paths, weight="amount", directed=True).graph.adjacency
    assert [directed[0, 1], directed[1, 0]] == [2, 1]


def test_scipy_rows_are_targets() -> None:
    adjacency = csr_array(np.array([[0, 2.0, 0], [0, 0, 0], [0, 1.0, 0]]))
    masks = Masks([1, 0, 0], [0, 1, 0], [0, 0, 1])
    data = NodeData.from_scipy(adjacency, csr_array(np.eye(3)), [0, 1, 0], masks=masks)
    assert data.graph.edge_index.tolist() == [[1, 1], [0, 2]]
    assert data.masks is masks
    assert data.is_sparse
    assert data.warnings()[0].startswith("The graph is directed: 2 of 2 edges")
    assert repr(data).endswith("directed=True)")
    with pytest.raises(InvalidArgument, match="expected a scipy sparse matrix"):
        NodeData.from_scipy(np.eye(3), None, None)

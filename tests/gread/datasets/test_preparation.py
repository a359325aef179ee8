"""Features from columns: categories, missing values, standardisation, and how they travel with a network."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from gread.datasets.preparation import MOST_CATEGORIES, Column, FeatureChoices, FeatureColumns, Preparation
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.trials import Trial
from gread.training.trainer import train
from rdgraph.errors import FileError, InvalidArgument, UnknownName

EDGES = "source,target\na,b\nb,c\nc,d\n"
NODES = "id,label,age,colour\na,x,1,red\nb,y,3,blue\nc,x,,red\nd,y,8,\n"
WHOLE = NODES.replace("c,x,,", "c,x,4,").replace("8,\n", "8,green\n")

Write = Callable[[str, str], tuple[Path, Path]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(edges: str = EDGES, nodes: str = WHOLE) -> tuple[Path, Path]:
        (tmp_path / "edges.csv").write_text(edges)
        (tmp_path / "nodes.csv").write_text(nodes)
        return tmp_path / "edges.csv", tmp_path / "nodes.csv"

    return written


def test_a_column_of_words_becomes_a_feature_per_word(write: Write) -> None:
    data = NodeData.from_files(*write(EDGES, WHOLE))
    assert data.preparation is not None
    assert data.preparation.feature_names == ("age", "colour=blue", "colour=green", "colour=red")
    assert data.x.tolist() == [[1, 0, 0, 1], [3, 1, 0, 0], [4, 0, 0, 1], [8, 0, 1, 0]]
    assert data.graph.names == ("a", "b", "c", "d")
    assert "One feature per category: colour (3)." in data.meta.notes


def test_numbers_may_be_categories_and_words_may_be_left_out(write: Write) -> None:
    data = NodeData.from_files(*write(EDGES, WHOLE), categories=["age"], features=["age"])
    assert data.preparation is not None
    assert data.preparation.feature_names == ("age=1", "age=3", "age=4", "age=8")
    assert np.array_equal(data.x, np.eye(4))
    with pytest.raises(InvalidArgument, match="categories among the features, got colour"):
        NodeData.from_files(*write(EDGES, WHOLE), categories=["colour"], features=["age"])
    with pytest.raises(FileError, match=r"expected a column 'color'.*did you mean 'colour'"):
        NodeData.from_files(*write(EDGES, WHOLE), categories=["color"])


def test_missing_values_are_an_error_or_the_mean(write: Write) -> None:
    paths = write(EDGES, NODES)
    with pytest.raises(FileError, match=r"line 5, column 'colour': expected a category.*missing='mean'"):
        NodeData.from_files(*paths, features=["colour"])
    with pytest.raises(FileError, match=r"line 4, column 'age': expected a finite number.*missing='mean'"):
        NodeData.from_files(*paths, features=["age"])
    data = NodeData.from_files(*paths, missing="mean")
    assert data.x.tolist() == [[1, 0, 1], [3, 1, 0], [4, 0, 1], [8, 0, 0]]
    with pytest.raises(UnknownName, match="did you mean 'mean'"):
        NodeData.from_files(*paths, missing="meen")
    with pytest.raises(UnknownName, match=r"got 'zero' \(known: error, mean\)"):
        NodeData.from_files(*paths, missing="zero")


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "null", "None"])
def test_words_for_missing_values(write: Write, word: str) -> None:
    data = NodeData.from_files(*write(EDGES, NODES.replace("c,x,,", f"c,x,{word},")), missing="mean")
    assert data.x[2, 0] == 4.0


def test_one_word_among_numbers_is_an_error(write: Write) -> None:
    with pytest.raises(FileError, match=r"line 3, column 'age': expected a finite number, got 'three'.*categories="):
        NodeData.from_files(*write(EDGES, WHOLE.replace("b,y,3", "b,y,three")))
    infinite = WHOLE.replace("red", "inf").replace("blue", "inf").replace("green", "inf")
    with pytest.raises(FileError, match="column 'colour': expected a finite number, got 'inf'"):
        NodeData.from_files(*write(EDGES, infinite))


def test_too_many_words_are_no_categories(write: Write) -> None:
    count = MOST_CATEGORIES + 1
    nodes = "id,label,name\n" + "".join(f"{k},{k % 2},word{k}\n" for k in range(count))
    with pytest.raises(FileError, match=f"nodes.csv: expected at most {MOST_CATEGORIES} categories in column 'name'"):
        NodeData.from_files(*write("source,target\n0,1\n", nodes))


def test_standardised_columns_have_mean_0_and_deviation_1(write: Write) -> None:
    data = NodeData.from_files(*write(EDGES, WHOLE), standardise=True)
    age = np.array([1.0, 3.0, 4.0, 8.0])
    np.testing.assert_allclose(data.x[:, 0], (age - age.mean()) / age.std(), rtol=1e-6)
    assert np.isin(data.x[:, 1:], (0, 1)).all()
    flat = NodeData.from_files(*write(EDGES, WHOLE.replace(",3,", ",1,").replace(",4,", ",1,").replace(",8,", ",1,")),
                               features=["age"], standardise=True)  # fmt: skip
    assert flat.x.tolist() == [[0.0]] * 4


def test_data_sets_are_standardised_too() -> None:
    data = karate().standardised()
    np.testing.assert_allclose(np.asarray(data.x).mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(np.asarray(data.x).std(0), 1, rtol=1e-5)


def test_another_file_is_prepared_as_the_first_was(write: Write) -> None:
    first = NodeData.from_files(*write(EDGES, WHOLE), standardise=True, missing="mean")
    other = "colour,id,more,age\nred,p,7,4\nviolet,q,7,\n,r,7,8\n"
    with pytest.warns(UserWarning, match=r"'colour'.*'violet' \(1 row\)"):
        again = NodeData.from_files(*write("source,target\np,q\n", other), label=None, preparation=first.preparation)
    assert [text for text in again.warnings() if "'violet' (1 row)" in text]
    age = np.array([1.0, 3.0, 4.0, 8.0])
    np.testing.assert_allclose(again.x[:, 0], (np.array([4.0, 4.0, 8.0]) - age.mean()) / age.std(), rtol=1e-6)
    assert again.x[:, 1:].tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    with pytest.raises(FileError, match="expected a column 'age'"):
        NodeData.from_files(*write("source,target\np,q\n", "id,colour\np,red\nq,red\n"), label=None,
                            preparation=first.preparation)  # fmt: skip
    with pytest.raises(FileError, match=r"column 'age': expected a finite number, got 'old'; write one$"):
        NodeData.from_files(*write("source,target\np,q\n", "id,colour,age\np,red,old\nq,red,old\n"), label=None,
                            preparation=first.preparation)  # fmt: skip


def test_parquet_files_have_words_ids_and_missing_values_as_well(tmp_path: Path, write: Write) -> None:
    nodes = {"id": ["a", "b", "c", "d"], "label": ["x", "y", "x", "y"], "age": [1, 3, None, 8],
             "colour": ["red", "blue", "red", None]}  # fmt: skip
    parquet.write_table(pa.table(nodes), tmp_path / "n.parquet")
    parquet.write_table(pa.table({"source": ["a", "b", "c"], "target": ["b", "c", "d"]}), tmp_path / "e.parquet")
    files = tmp_path / "e.parquet", tmp_path / "n.parquet"
    found = NodeData.from_files(*files, missing="mean", standardise=True)
    expected = NodeData.from_files(*write(EDGES, NODES), missing="mean", standardise=True)
    np.testing.assert_array_equal(found.x, expected.x)
    assert found.graph.names == expected.graph.names
    assert found.preparation == expected.preparation
    with pytest.raises(FileError, match="expected a category in row 3, column 'colour'"):
        NodeData.from_files(*files, features=["colour"])


def test_arrays_are_standardised_as_tables_are(tmp_path: Path) -> None:
    x = np.array([[1.0], [3.0], [4.0], [8.0]])
    np.savez(tmp_path / "n.npz", x=x, y=np.array([0, 1, 0, 1]))
    np.savez(tmp_path / "e.npz", edge_index=np.array([[0, 1], [1, 2]]))
    data = NodeData.from_files(tmp_path / "e.npz", tmp_path / "n.npz", standardise=True)
    np.testing.assert_allclose(data.x, (x - x.mean()) / x.std(), rtol=1e-6)


def test_a_network_carries_its_preparation_and_classes(tmp_path: Path, write: Write) -> None:
    data = NodeData.from_files(*write(EDGES, WHOLE), standardise=True)
    split = data.stratified(1, train=0.5, val=0.25)
    network = train(split, [Trial(Config().updated({"hidden": 4, "epochs": 2}))], device="cpu").network(0)
    network.save(tmp_path / "net")
    loaded = Network.load(tmp_path / "net")
    assert loaded.preparation == data.preparation
    assert loaded.class_names == ("x", "y")
    assert loaded(data).equal(network(data.x, data.graph))
    with pytest.raises(InvalidArgument, match="pass the graph as well"):
        loaded(data.x)


def test_words_of_a_file_make_a_preparation_or_are_refused() -> None:
    table = FeatureColumns(("a", "b"), np.array([[1.0], [np.nan]]), {"b": ["u", None]})
    made = Preparation.fit(table, FeatureChoices(missing="mean", standardise=True))
    assert Preparation.from_words(json.loads(json.dumps(made.to_words()))) == made
    broken = Preparation((Column("a", None, 0.0, 0.0),)).to_words()
    with pytest.raises(InvalidArgument, match="deviations > 0"):
        Preparation.from_words(broken)
    with pytest.raises(InvalidArgument, match="expected the columns a, b, got a"):
        made.apply(FeatureColumns(("a",), np.zeros((2, 1))))
    with pytest.raises(InvalidArgument, match="expected a number in column 'a', got none"):
        Preparation.fit(FeatureColumns(("a",), np.full((2, 1), np.nan)), FeatureChoices(missing="mean"))

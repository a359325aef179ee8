"""`GREADClassifier`: what it writes, what it reads back, and the files that it refuses."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gread.classifier import prediction
from gread.classifier.estimators import GREADClassifier
from gread.datasets.node_data import NodeData
from gread.models.bundle import load_bundle, save_bundle
from gread.models.trained_network import Network
from rdgraph.errors import FileError
from tests.gread.classifier.small_estimators import SMALL
from tests.property_examples import examples


def test_saved_and_loaded_to_the_bit(club: NodeData, fitted: GREADClassifier, tmp_path: Path) -> None:
    fitted.save(tmp_path / "club")
    names = sorted(p.name for p in (tmp_path / "club").iterdir())
    assert [re.sub("[0-9a-f]{16}", "*", name) for name in names] == ["classifier-*.safetensors", "classifier.json"]
    loaded = GREADClassifier.load(tmp_path / "club")
    assert np.array_equal(loaded.predict_proba(), fitted.predict_proba())
    assert np.array_equal(loaded.history_, fitted.history_)
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.best_epoch_, loaded.n_iter_, loaded.n_features_in_, loaded.status_) == (
        fitted.best_epoch_, fitted.n_iter_, fitted.n_features_in_, fitted.status_,
    )  # fmt: skip
    assert loaded.set_params(hidden=4, epochs=3).n_iter_ == 25
    loaded.save(tmp_path / "again")  # the network that was trained, whatever the next one will be
    again = GREADClassifier.load(tmp_path / "again")
    assert np.array_equal(again.predict_proba(), fitted.predict_proba())
    assert (again.hidden, again.epochs, again.n_iter_) == (4, 3, 25)
    assert again.fit(club.x, club.y, graph=club.graph).network_.config.hidden == 4


def test_saved_with_names_members_and_node_numbers(club: NodeData, tmp_path: Path) -> None:
    names = np.array(["hi", "officer"])[club.y]
    clf = GREADClassifier(
        **SMALL | {"learning_rate": np.float64(0.05), "beta": "node"}, members=2, graph=club.graph,
        features=club.x.toarray(),
    ).fit(np.arange(34), names)  # fmt: skip
    clf.save(tmp_path)
    loaded = GREADClassifier.load(str(tmp_path))
    assert np.array_equal(loaded.predict_proba([[3], [1]]), clf.predict_proba([[3], [1]]))
    assert loaded.predict([33]).tolist() == ["officer"]
    assert np.array_equal(loaded.best_epochs_, clf.best_epochs_)
    assert np.array_equal(loaded.features, clf.features)


def test_files_of_something_else_are_refused(fitted: GREADClassifier, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected a saved classifier"):
        GREADClassifier.load(tmp_path)
    network = tmp_path / "network"
    fitted.network_.save(network)
    with pytest.raises(FileError, match="expected a saved classifier"):
        GREADClassifier.load(network)
    (network / "network.json").rename(network / "classifier.json")
    with pytest.raises(FileError, match="format 'gread classifier 3'"):
        GREADClassifier.load(network)
    place = tmp_path / "clf"
    fitted.save(place)
    with pytest.raises(FileError, match="expected a saved network"):
        Network.load(place)
    bundle = load_bundle(place / prediction.MANIFEST, prediction.FORMAT, "a saved classifier")
    words, numbers = bundle.words, bundle.numbers
    bias = numbers["member0.decoder_bias"]
    for changed, others in (
        ({"classes": [0, 1, 2]}, {}),
        ({"classes": None}, {}),
        ({"nodes": 33}, {}),
        ({"nodes": "many"}, {}),
        ({"features": 12}, {}),
        ({"arguments": {"epoch": 3}}, {}),
        ({"model": {}}, {}),
        ({"status": []}, {}),
        ({}, {"member0.decoder_bias": bias[:, :1]}),
        ({}, {"edge_weight": numbers["edge_weight"][:5]}),
        ({}, {"edge_index": numbers["edge_index"] + 30}),
        ({}, {"histories": torch.zeros(2, 3, 4)}),
        ({}, {"best_epochs": torch.zeros(0, dtype=torch.int64)}),
    ):
        save_bundle(place / prediction.MANIFEST, prediction.FORMAT, words | changed, numbers | others)
        with pytest.raises(FileError, match="does not describe"):
            GREADClassifier.load(place)


@pytest.mark.parametrize(
    "changed",
    [
        {"x.indices": lambda v: v + 40},
        {"x.indices": lambda v: v - 40},
        {"x.indices": lambda v: v.double()},
        {"x.indptr": lambda v: v + 10**6},
        {"x.indptr": lambda v: v.flip(0)},
        {"x.indptr": lambda v: torch.cat([v[:1], v[:-1]])},
        {"x.indptr": lambda v: v[:-1]},
        {"x.indptr": lambda v: torch.cat([v[:3], v[3:4] + 5000, v[4:]])},
        {"x.data": lambda v: v[:-1]},
        {"x.data": lambda v: v * torch.inf},
        {"x.data": lambda v: v[None]},
    ],
)
def test_saved_features_that_point_outside_are_refused(
    fitted: GREADClassifier, tmp_path: Path, changed: dict[str, Any]
) -> None:
    """A crafted file: its hashes fit, its sparse matrix does not; scipy's compiled code must not see it."""
    fitted.save(tmp_path)
    found = load_bundle(tmp_path / prediction.MANIFEST, prediction.FORMAT, "a saved classifier")
    others = {name: change(found.numbers[name]) for name, change in changed.items()}
    save_bundle(tmp_path / prediction.MANIFEST, prediction.FORMAT, found.words, found.numbers | others)
    with pytest.raises(FileError, match="in the features"):
        GREADClassifier.load(tmp_path)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7), cut=st.booleans(), which=st.integers(0, 1))
def test_a_damaged_classifier_is_refused_or_the_same(
    fitted: GREADClassifier, tmp_path: Path, place: int, bit: int, cut: bool, which: int
) -> None:
    fitted.save(tmp_path)
    path = sorted(tmp_path.iterdir())[which]
    content = path.read_bytes()
    k = place % len(content)
    path.write_bytes(content[:k] if cut else content[:k] + bytes([content[k] ^ (1 << bit)]) + content[k + 1 :])
    with suppress(FileError):
        assert np.array_equal(GREADClassifier.load(tmp_path).predict_proba(), fitted.predict_proba())
    path.unlink()

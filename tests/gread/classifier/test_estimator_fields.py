"""`GREADClassifier` with several fields and second order: fit, predict, save, load, refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gread import GREADClassifier, karate
from rdgraph.errors import NotApplicable, UnknownName

PAIR = "u' = -Du*L@u + beta*(A@u - A@A@u) - gamma*v; v' = -Dv*L@v + delta*(u - v)"
QUICK: dict[str, Any] = {"hidden": 8, "epochs": 30, "attention_dim": 8, "learning_rate": 0.05, "device": "cpu",
                         "method": "rk4", "step": 0.5}  # fmt: skip


def fitted(**values: Any) -> GREADClassifier:
    data = karate()
    clf = GREADClassifier(**QUICK | values)
    return clf.fit(data.x, data.y, graph=data.graph, mask=data.masks.train[0], val_mask=data.masks.val[0])


@pytest.mark.parametrize(
    "values",
    [
        {"reaction": PAIR, "members": 2},
        {"reaction": PAIR, "readout": "u"},
        {"reaction": "H'' = -gamma*H - alpha*H' + tanh(A@H)", "velocity": "encoded"},
        {"reaction": "-alpha*exp(-t)*L@H + beta*sin(omega*t)*H"},
    ],
    ids=["two fields", "one read", "second order", "time"],
)
@pytest.mark.slow
def test_it_learns_and_is_the_same_after_loading(values: dict[str, Any], tmp_path: Path) -> None:
    data = karate()
    clf = fitted(**values)
    assert clf.score(None, data.y, mask=data.masks.test[0]) > 0.6
    assert clf.history_[-1, 0] < clf.history_[0, 0]
    clf.save(tmp_path)
    again = GREADClassifier.load(tmp_path)
    assert np.array_equal(again.predict_proba(), clf.predict_proba())
    assert again.get_params()["readout"] == clf.readout
    part = data.subset(range(30))
    assert clf.predict(part.x, graph=part.graph).shape == (30,)


def test_coefficients_have_their_own_names() -> None:
    network = fitted(reaction=PAIR, epochs=2).network_
    values = network.coefficients()
    assert sorted(values) == ["Du", "Dv", "beta", "delta", "gamma"]
    assert values["beta"].shape == (8,)
    assert all(0 < float(values[name]) < 1 for name in ("Du", "Dv", "delta", "gamma"))


def test_the_method_is_chosen_and_told() -> None:
    network = fitted(reaction="H'' = -gamma*H - alpha*H' + tanh(A@H)", epochs=2, method="auto", step=0.5).network_
    assert (network.config.method, network.config.step) == ("rk4", 0.5)
    assert "tanh(A@H) is nonlinear" in network.reason


def test_what_cannot_be_trained_is_told() -> None:
    with pytest.raises(NotApplicable, match="expected an equation without white noise to train"):
        fitted(reaction="-alpha*L@H + sigma*H*xi")
    with pytest.raises(UnknownName, match="expected a readout, got 'H'"):
        fitted(reaction=PAIR, readout="H")
    with pytest.raises(UnknownName, match="expected a velocity"):
        fitted(reaction=PAIR, velocity="random")

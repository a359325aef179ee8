"""Fixtures of the classifier's tests: the karate club, and a classifier fitted to it."""

from __future__ import annotations

import pytest

from gread.classifier.estimators import GREADClassifier
from gread.datasets.embedded import karate
from gread.datasets.node_data import NodeData
from tests.gread.classifier.small_estimators import SMALL


@pytest.fixture(scope="module")
def club() -> NodeData:
    return karate()


@pytest.fixture(scope="module")
def fitted(club: NodeData) -> GREADClassifier:
    masks = club.masks
    return GREADClassifier(**SMALL).fit(
        club.x, club.y, graph=club.graph, mask=masks.train[0], val_mask=masks.val[0]
    )  # fmt: skip

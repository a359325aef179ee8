"""`conforms`: a fixture for test suites; put `from rdgraph.testing import conforms` into conftest.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rdgraph.infer.layers.conformity import Conformity, conform
from rdgraph.systems.system import System

#: Takes a layer, and fails the test where it does not compute the equation.
Expectation = Callable[[Any], Conformity]


@pytest.fixture(scope="session")
def conforms() -> Callable[..., Expectation]:
    """conforms("EQUATION", **options)(layer) fails the test where `conform(layer, "EQUATION", **options)` differs.

    The message contains the equation that the layer computes, the smallest witness and the hints.
    """
    return expectation


def expectation(equation: str | System, **options: Any) -> Expectation:
    """A function that takes a layer and fails where it differs from the equation; otherwise it returns the answer.

    >>> expectation("2*H")(lambda x, edge_index: x + x).conforms
    True
    """

    def expect(layer: Any) -> Conformity:
        __tracebackhide__ = True
        conformity = conform(layer, equation, **options)
        if not conformity:
            pytest.fail(str(conformity), pytrace=False)
        return conformity

    return expect

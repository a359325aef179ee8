"""`conforms`: a fixture for other people's test suites; `from rdgraph.testing import conforms` in their conftest.py."""

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

    The message has the equation that the layer computes, the smallest witness and the hints.
    """
    return expectation


def expectation(equation: str | System, **options: Any) -> Expectation:
    """A function that takes a layer and fails where it differs from the equation; it returns the answer otherwise.

    >>> expectation("2*H")(lambda x, edge_index: x + x).conforms
    True
    """

    def expect(layer: Any) -> Conformity:
        __tracebackhide__ = True
        found = conform(layer, equation, **options)
        if not found:
            pytest.fail(str(found), pytrace=False)
        return found

    return expect

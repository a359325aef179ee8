"""The normalisations that the package brings along."""

from __future__ import annotations

from typing import Any

from rdgraph.normalisations.normalisation import Normalisation


def _by_roots(w: Any, own: Any, other: Any, column: Any) -> Any:
    # One product of the two roots, so that entries [i, j] and [j, i] are equal to the last bit.
    return w / (own**0.5 * other**0.5)


def _by_row(w: Any, own: Any, other: Any, column: Any) -> Any:
    return w / own


def _by_column(w: Any, own: Any, other: Any, column: Any) -> Any:
    return w / column


def _as_is(w: Any, own: Any, other: Any, column: Any) -> Any:
    return w


def built_in_normalisations() -> tuple[Normalisation, ...]:
    """Their records, in the order in which they are listed."""
    return (
        Normalisation(
            "symmetric", "D^-1/2 A D^-1/2",
            _by_roots,
            is_symmetric=True, norm="2", spectrum=(0, 2), averages="stretched", is_similar=True,
            conserved=("sqrt(d)", ""), is_sharp=True, transposed="symmetric",
        ),
        Normalisation(
            "row", "D^-1 A", _by_row,
            norm="inf", spectrum=(0, 2), row_stochastic=True, averages="stochastic", is_similar=True,
            conserved=("d", "the graph is undirected"), is_sharp=True, transposed="column",
        ),
        Normalisation(
            "column", "A D^-1", _by_column,
            norm="1", spectrum=(0, 2), column_stochastic=True, is_similar=True, is_sharp=True, transposed="row",
            conserved=("1", "every node has an outgoing edge; where one is isolated its weight is 0"),
        ),
        Normalisation(
            "none", "A", _as_is, has_degrees=True, is_sharp=True, transposed="none"
        ),
        Normalisation("free", "weights of unknown kind", None),
    )  # fmt: skip

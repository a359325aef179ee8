"""The normalisations that the package brings along."""

from __future__ import annotations

from rdgraph.normalisations.normalisation import Normalisation


def built_in_normalisations() -> tuple[Normalisation, ...]:
    """Their records, in the order in which they are listed."""
    return (
        Normalisation(
            "symmetric", "D^-1/2 A D^-1/2",
            # One product of the two roots, so that entries [i, j] and [j, i] are equal to the last bit.
            lambda w, own, other, column: w / (own**0.5 * other**0.5),
            is_symmetric=True, norm="2", spectrum=(0, 2), averages="stretched", is_similar=True,
            conserved=("sqrt(d)", ""), is_sharp=True, transposed="symmetric",
        ),
        Normalisation(
            "row", "D^-1 A", lambda w, own, other, column: w / own,
            norm="inf", spectrum=(0, 2), row_stochastic=True, averages="stochastic", is_similar=True,
            conserved=("d", "the graph is undirected"), is_sharp=True, transposed="column",
        ),
        Normalisation(
            "column", "A D^-1", lambda w, own, other, column: w / column,
            norm="1", spectrum=(0, 2), column_stochastic=True, is_similar=True, is_sharp=True, transposed="row",
            conserved=("1", "every node has an outgoing edge; where one is isolated its weight is 0"),
        ),
        Normalisation(
            "none", "A", lambda w, own, other, column: w, has_degrees=True, is_sharp=True, transposed="none"
        ),
        Normalisation("free", "weights of unknown kind", None),
    )  # fmt: skip

"""The registry of normalisations; whatever asks about one reads its record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from rdgraph.errors import InvalidArgument
from rdgraph.normalisations.claims import check_claims
from rdgraph.normalisations.normalisation import NORMS, Entry, Normalisation
from rdgraph.records import Records


def _built_in() -> Iterable[Normalisation]:
    from rdgraph.normalisations.built_in import built_in_normalisations

    return built_in_normalisations()


#: The records by name; "free" stands for weights of unknown kind.
records: Records[Normalisation] = Records("normalisation", _built_in)


class NormalisationNames(Collection[str]):
    """The names of the normalisations that a graph can be given, as they are registered now."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in records and records[name].entry is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in records.items() if record.entry is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


NORMALISATIONS = NormalisationNames()


def find_normalisation(name: str) -> Normalisation:
    """The record of a normalisation; unknown names get the closest one offered.

    >>> find_normalisation("row").norm, find_normalisation("none").laplacian
    ('inf', 'D - A')
    """
    return records.find(name, NORMALISATIONS)


def register_normalisation(
    name: str,
    entry: Entry,
    *,
    identity: float = 0.0,
    formula: str = "",
    is_symmetric: bool = False,
    norm: str | None = None,
    spectrum: tuple[float, float] | None = None,
    row_stochastic: bool = False,
    column_stochastic: bool = False,
) -> Normalisation:
    """Add a normalisation A = identity*I + entry, with L = I - A, so that every part of the package takes its name.

    What is said of it is checked on random graphs, weighted, with isolated nodes and, unless it asks for undirected
    ones, directed; bounds and answers then rely on it. What is not said is not assumed.

    Args:
        name: letters, digits, "-" and "_", not one that is taken.
        entry: (w, d_i, d_j, c_j) -> A[i, j], plain arithmetic on the weight of the edge j -> i, the sums of |w| over
            the rows of i and j, and over the column of j.
        identity: what is added to the diagonal.
        formula: of A, for pages.
        is_symmetric: A equals its transpose where the weights do; asks for undirected graphs.
        norm: "2", "inf" or "1" where |A| <= 1 in that norm.
        spectrum: an interval of the eigenvalues of L = I - A of undirected graphs.
        row_stochastic: rows sum to 1, or to 0 at a node without edges.
        column_stochastic: columns do.

    Returns:
        The record.

    Raises:
        InvalidArgument: the name is taken, or a graph contradicts what is said; the text shows the graph.

    >>> lazy = lambda w, own, other, column: w / (2 * own**0.5 * other**0.5)
    >>> register_normalisation("lazy", lazy, identity=0.5, is_symmetric=True, norm="2", spectrum=(0, 1)).laplacian
    'I - A'
    >>> unregister_normalisation("lazy")
    """
    records.check_free(name)
    if norm is not None and norm not in NORMS:
        raise InvalidArgument(f"expected a norm among {', '.join(NORMS)}, got {norm!r}")
    record = Normalisation(
        name, formula or name, entry, float(identity), is_symmetric=is_symmetric, norm=norm, spectrum=spectrum,
        row_stochastic=row_stochastic, column_stochastic=column_stochastic,
        transposed=name if is_symmetric else "free",
    )  # fmt: skip
    check_claims(record)
    return records.add(record)


def unregister_normalisation(name: str) -> None:
    """Take a registered normalisation out again; those that are built in stay.

    Args:
        name: of a normalisation that was registered.

    Raises:
        UnknownName: nothing was registered under this name.
    """
    records.remove(name)

"""The measures by name, one record each; `register_measure` adds your own measure.

Every measure maps states H (*batch, n, d) to one number per member, (*batch); with weights per member (see
`rdgraph.graphs.operator`) every member is measured on its own graph. L is that of the given operator: D - W for `none`,
I - A for the normalised ones. Time and memory are linear in the edges. NaN and infinity are refused. A quotient of
zeros, as for the zero state, is nan. States in half precision are measured in single precision. All except the
numerical rank are differentiable in H where they are smooth, the Dirichlet and the Laplacian energy also in the
weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from torch import Tensor

from analysis.measures.class_separation import fisher_ratio
from analysis.measures.distances import kernel_distance, mad
from analysis.measures.edge_sums import check_plain
from analysis.measures.energies import dirichlet_energy, laplacian_energy, normalised_energy, rayleigh
from analysis.measures.ranks import effective_rank, numerical_rank
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.operator import Operator
from rdgraph.records import Records

#: What a measure may need besides the state: the operator `none`, the operator of the dynamics, the classes of nodes.
NEEDS = ("plain", "operator", "labels")


@dataclass(frozen=True)
class Measure:
    r"""A measure of a state on a graph, with its description.

    Attributes:
        name: A Python name, used by studies and `solve(..., measures=...)`.
        function: Maps states H (*batch, n, d), followed by its `needs` in that order, to (*batch) numbers.
        needs: Any of "plain", the graph's operator `none`; "operator", that of the dynamics; "labels", the classes
            of the nodes.
        label: The label in figures.
        formula: The formula in LaTeX, with its $ signs.
        range: The range of possible values.
        is_log: Whether its axis is logarithmic, and its mean geometric.

    Raises:
        InvalidArgument: For an invalid name, an unknown need, or an empty range.

    Example:
        >>> import analysis
        >>> facts = {"label": "size", "formula": "$H^2$", "range": (0, 9)}
        >>> size = analysis.Measure("size", lambda H: H.square().sum((-2, -1)), (), **facts)
        >>> size.range[0], size.needs
        (0, ())
    """

    name: str
    function: Callable[..., Tensor]
    needs: tuple[str, ...]
    _: KW_ONLY
    label: str
    formula: str
    range: tuple[float, float]
    is_log: bool = True

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise InvalidArgument(f"expected a Python name for a measure, got {self.name!r}; use letters, digits and _")
        if unknown := [need for need in self.needs if need not in NEEDS]:
            raise InvalidArgument(f"expected needs among {', '.join(NEEDS)}, got {', '.join(map(repr, unknown))}")
        if not self.range[0] < self.range[1]:
            raise InvalidArgument(f"expected a range (least, largest) for {self.name}, got {self.range}")

    def on(self, plain: Operator, op: Operator, labels: Any) -> Callable[[Tensor], Tensor]:
        """The measure as a function of the state only."""
        if "labels" in self.needs and labels is None:
            raise InvalidArgument(f"expected labels for {self.name}, got none; pass labels=")
        given = {"plain": plain, "operator": op, "labels": labels}
        rest = [given[need] for need in self.needs]
        return lambda H: self.function(H, *rest)


def _built_in() -> tuple[Measure, ...]:
    return (
        Measure(
            "dirichlet_energy", dirichlet_energy, ("plain",), label="Dirichlet energy", formula=r"$E(H)$",
            range=(0.0, math.inf),
        ),
        Measure(
            "laplacian_energy", laplacian_energy, ("operator",), label="Laplacian energy",
            formula=r"$\mathrm{tr}(H^\top L H)$", range=(-math.inf, math.inf),
        ),
        Measure(
            "normalised_energy", normalised_energy, ("plain",), label="normalised energy",
            formula=r"$\mathrm{tr}(H^\top (D-W) H)/\|H\|_F^2$", range=(0.0, math.inf),
        ),
        Measure(
            "rayleigh", rayleigh, ("operator",), label="Rayleigh quotient",
            formula=r"$\langle H, L H\rangle/\langle H, H\rangle$", range=(0.0, math.inf),
        ),
        Measure(
            "mad", mad, ("plain",), label="mean average distance (cosine)", formula=r"$\mathrm{MAD}(H)$",
            range=(0.0, 2.0),
        ),
        Measure(
            "kernel_distance", kernel_distance, ("operator",), label="distance to the kernel of L",
            formula=r"$\|H - PH\|_F/\|H\|_F$", range=(0.0, 1.0),
        ),
        Measure(
            "effective_rank", effective_rank, (), label="effective rank", formula=r"$\exp(-\sum_k p_k \log p_k)$",
            range=(1.0, math.inf), is_log=False,
        ),
        Measure(
            "numerical_rank", numerical_rank, (), label="numerical rank",
            formula=r"$\#\{\sigma_k > \mathrm{tol}\,\sigma_1\}$", range=(0.0, math.inf), is_log=False,
        ),
        Measure(
            "fisher_ratio", fisher_ratio, ("labels",), label="Fisher ratio",
            formula=r"$\mathrm{tr}\,S_B/\mathrm{tr}\,S_W$", range=(0.0, math.inf),
        ),
    )  # fmt: skip


#: The measures by name, in the order of registration.
MEASURES: Records[Measure] = Records("measure", _built_in, pattern=r"[^\W\d]\w*")


def register_measure(measure: Measure) -> Measure:
    """Add a measure to those of `make_measures`, `measure_all` and the studies.

    Args:
        measure: The record, with a new name.

    Returns:
        The same record.

    Raises:
        InvalidArgument: If it is not a `Measure`, or the name exists.

    Example:
        >>> import math, torch, analysis, rdgraph as rd
        >>> spread = analysis.Measure("spread", lambda H: H.amax((-2, -1)) - H.amin((-2, -1)), (), label="spread",
        ...                  formula=r"$\\max H - \\min H$", range=(0, math.inf))
        >>> _ = analysis.register_measure(spread)
        >>> H = torch.tensor([[0.0], [1.0], [3.0]])
        >>> analysis.measure_all(H, plain=rd.generators.path(3).operator("none"))["spread"]
        tensor(3.)
        >>> analysis.measures.unregister_measure("spread")
    """
    if not isinstance(measure, Measure):
        raise InvalidArgument(f"expected a Measure, got {type(measure).__name__}; make one with analysis.Measure(...)")
    return MEASURES.add(measure)


def unregister_measure(name: str) -> None:
    """Remove a registered measure.

    Args:
        name: The name of the measure.

    Raises:
        UnknownName: If no measure has that name.

    Example:
        See `register_measure`.
    """
    MEASURES.remove(name)


def find_measure(name: str) -> Measure:
    """The registered measure with that name.

    Args:
        name: The name of the measure.

    Returns:
        Its record.

    Raises:
        UnknownName: If no measure has that name; the message suggests the closest one.

    Example:
        >>> import analysis
        >>> analysis.measures.find_measure("mad").range
        (0.0, 2.0)
    """
    return MEASURES.find(name)


def make_measures(
    *, plain: Operator, op: Operator | None = None, labels: Any = None, names: Iterable[str] | None = None
) -> dict[str, Callable[[Tensor], Tensor]]:
    """Functions of the state only, for `solve(..., measures=make_measures(...))`, in the order of registration.

    Args:
        plain: The graph's operator `none`, for the Dirichlet energy, the normalised energy and MAD.
        op: The operator of the dynamics, for the Laplacian energy, the Rayleigh quotient and the distance to the
            kernel; `plain` where left out.
        labels: (n,) or (*batch, n), the classes of the nodes, -1 for unknown; they add the Fisher ratio.
        names: The names of the measures; by default all that are defined for the data.

    Returns:
        A function per measure, by name.

    Raises:
        UnknownName: For an unknown name.
        InvalidArgument: For a measure that needs labels without labels, or an operator that is not `none`.

    Example:
        >>> import analysis, rdgraph as rd
        >>> ring = rd.generators.ring(4).operator("none")
        >>> list(analysis.measures.make_measures(plain=ring, names=["mad", "dirichlet_energy"]))
        ['dirichlet_energy', 'mad']
    """
    check_plain(plain, "the Dirichlet energy")
    dynamics = plain if op is None else op
    if names is None:
        chosen = [m.name for m in MEASURES.values() if labels is not None or "labels" not in m.needs]
    else:
        chosen = [find_measure(name).name for name in names]
    return {name: measure.on(plain, dynamics, labels) for name, measure in MEASURES.items() if name in chosen}


def measure_all(H: Tensor, *, plain: Operator, op: Operator | None = None, labels: Any = None) -> dict[str, Tensor]:
    """Every registered measure of states, by name.

    Args:
        H: States (*batch, n, d).
        plain: The graph's operator `none`.
        op: The operator of the dynamics; by default `plain`.
        labels: The classes of the nodes; without labels, measures that need them are omitted.

    Returns:
        (*batch) numbers per measure.

    Raises:
        InvalidArgument: For states, operators or labels that do not match.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> H = torch.tensor([[0.0], [1.0], [3.0]])
        >>> found = analysis.measure_all(H, plain=rd.generators.path(3).operator("none"))
        >>> found["dirichlet_energy"], found["numerical_rank"]
        (tensor(3.3333), tensor(1))
    """
    return {name: measure(H) for name, measure in make_measures(plain=plain, op=op, labels=labels).items()}

"""Filter responses of linear systems as curves and figures: the flow, and what fixed-step methods make of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.figure_files import DASHES, PALETTE, plain
from rdgraph.errors import InvalidArgument, NotApplicable, Undecided
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.filters import classify, response_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Gains outside this range are as good as zero, or as good as lost.
GAIN_RANGE = (1e-4, 1e5)


@dataclass(frozen=True)
class ResponseCurve:
    """Gain over frequency of one system under one method.

    Attributes:
        system: The name or the equation.
        method: "exact" or a fixed-step method.
        step: Its step; None without one.
        lam: (m,) eigenvalues of L.
        gain: (m,) factors of the modes.

    Example:
        See `response_curves`.
    """

    system: str
    method: str
    step: float | None
    lam: np.ndarray
    gain: np.ndarray


def response_curves(
    system: System | str,
    *,
    T: float,
    values: Mapping[str, float],
    methods: Sequence[tuple[str, float | None]],
    points: int = 401,
) -> list[ResponseCurve]:
    """Exact and discretised responses g(lam) of a linear system on lam in [0, 2], coefficients set to numbers.

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        T: The end time.
        values: A value for every coefficient; other entries are ignored.
        methods: Pairs of a method and its step, ("exact", None) for the flow.
        points: The number of values of lam.

    Returns:
        A curve per method.

    Raises:
        NotApplicable: For a system without a response.
        InvalidArgument: For a coefficient without a value.

    Example:
        >>> import analysis
        >>> flow = [("exact", None)]
        >>> curve, = analysis.response_curves("diffusion", T=1.0, values={"alpha": 1.0}, methods=flow, points=3)
        >>> curve.gain.round(4)  # exp(-lam)
        array([1.    , 0.3679, 0.1353])
    """
    system = parse(system)
    grid = np.linspace(0.0, 2.0, points)
    name = system.name or str(system)
    return [
        ResponseCurve(name, method, step, grid, gain_at(system, grid, T=T, values=values, method=method, step=step))
        for method, step in methods
    ]


def gain_at(
    system: System | str,
    lam: np.ndarray,
    *,
    T: float,
    values: Mapping[str, float],
    method: str = "exact",
    step: float | None = None,
) -> np.ndarray:
    """The symbolic response g(lam) at eigenvalues of L, coefficients set to numbers.

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        lam: Eigenvalues of L, of any shape.
        T: The end time.
        values: A value for every coefficient; other entries are ignored.
        method: "exact" or a fixed-step method.
        step: The step of the method.

    Returns:
        An array of the shape of lam.

    Raises:
        NotApplicable: For a system without a response.
        InvalidArgument: For a coefficient without a value.

    Example:
        >>> import numpy as np, analysis
        >>> analysis.gain_at("-alpha*L@H", np.array([0.0, 1.0]), T=2, values={"alpha": 0.5}, method="euler", step=1)
        array([1.  , 0.25])
    """
    system = parse(system)
    used = {k: v for k, v in values.items() if k in system.coefficients}
    missing = set(system.coefficients) - set(used)
    if missing:
        raise InvalidArgument(
            f"expected numbers for every coefficient, got none for {', '.join(sorted(missing))}; pass "
            f"values={{{min(missing)!r}: 1.0}}"
        )
    return response_values(system.replace(**used), lam, T, method, step)


def response_figure(
    systems: Sequence[System | str],
    *,
    T: float,
    values: Mapping[str, float],
    methods: Sequence[tuple[str, float | None]] = (("exact", None), ("euler", 1.0), ("rk4", 1.0)),
) -> tuple[Figure, list[ResponseCurve]]:
    """Figure with one panel per system: the exact response |g(lam)| and those of the methods.

    Args:
        systems: Each a `System`, a name of the catalogue, or a line of text.
        T: The end time.
        values: A value for every coefficient.
        methods: Pairs of a method and its step.

    Returns:
        The figure, and the curves drawn in it.

    Raises:
        InvalidArgument: For no system, or a coefficient without a value.
        NotApplicable: For a system without a response.

    Example:
        >>> import analysis
        >>> figure, curves = analysis.response_figure(["BS", "-alpha*L@H"], T=1.0, values={"alpha": 0.5, "beta": 1.0})
        >>> [(curve.system, curve.method) for curve in curves[::3]]
        [('BS', 'exact'), ('-alpha*L@H', 'exact')]
    """
    from matplotlib.figure import Figure

    if not systems:
        raise InvalidArgument("expected at least one system to draw, got none")
    parsed = [parse(system) for system in systems]
    columns = min(5, len(systems))
    rows = -(-len(systems) // columns)
    figure = Figure(figsize=(2.6 * columns + 0.8, 2.5 * rows + 1.0), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    curves: list[ResponseCurve] = []
    for panel, system in zip(panels.flat, parsed, strict=False):
        system_curves = response_curves(system, T=T, values=values, methods=methods)
        curves += system_curves
        for i, curve in enumerate(system_curves):
            label = curve.method if curve.step is None else f"{curve.method}, step {curve.step:g}"
            gain = np.maximum(np.abs(curve.gain), np.finfo(float).tiny)
            panel.plot(curve.lam, gain, DASHES[i % 4], color=PALETTE[i % 7], label=label, lw=2.4 - 0.5 * i)
        panel.axhline(1, color="0.8", lw=0.8, zorder=0)
        panel.set_title(f"{plain(_short(system_curves[0].system))}\n{_class_at(system, values)}", fontsize=9)
        panel.set(yscale="log", ylim=GAIN_RANGE, xlim=(0, 2))
    for panel in panels.flat[len(systems) :]:
        panel.set_visible(False)
    for column in range(columns):
        last = max(r for r in range(rows) if r * columns + column < len(systems))
        panels[last, column].set_xlabel("λ, eigenvalue of L", fontsize=9)
        panels[last, column].tick_params(labelbottom=True)
    for row in range(rows):
        panels[row, 0].set_ylabel("|gain|", fontsize=9)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    settings = ", ".join(f"{plain(k)} = {v:g}" for k, v in values.items())
    figure.suptitle(f"Gain of frequency λ after T = {T:g} ({settings}); titles: class of the exact flow", fontsize=11)
    return figure, curves


def _short(text: str, width: int = 34) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _class_at(system: System, values: Mapping[str, float]) -> str:
    used = {k: v for k, v in values.items() if k in system.coefficients}
    try:
        return classify(system.replace(**used))[0].kind
    except (NotApplicable, Undecided):
        return "undecided"


def curve_rows(curves: Sequence[ResponseCurve]) -> list[dict[str, float | str]]:
    """The numbers of response curves, one row per point.

    Args:
        curves: The result of `response_curves`.

    Returns:
        Rows with system, method, step, lam and gain.

    Example:
        >>> import analysis
        >>> flow = [("exact", None)]
        >>> curves = analysis.response_curves("diffusion", T=1.0, values={"alpha": 1.0}, methods=flow, points=2)
        >>> analysis.spectra.curve_rows(curves)[0]
        {'system': 'diffusion', 'method': 'exact', 'step': '', 'lam': 0.0, 'gain': 1.0}
    """
    return [
        {"system": c.system, "method": c.method, "step": "" if c.step is None else c.step, "lam": lam, "gain": gain}
        for c in curves
        for lam, gain in zip(c.lam.tolist(), c.gain.tolist(), strict=True)
    ]

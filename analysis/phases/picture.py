"""The picture of a phase diagram: predicted and simulated classes side by side, closed-form borders over both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis.figure_files import PALETTE, plain
from analysis.phases.diagram import CLASSES, GROWS, PhaseDiagram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: smooths, sharpens, neutral, grows without bound
COLOURS = (PALETTE[5], PALETTE[2], "#F0E442", PALETTE[1])


def phase_figure(diagram: PhaseDiagram) -> Figure:
    """Figure with classes by colour, hatched where the energy grows and the normalised energy tends to zero.

    Args:
        diagram: The result of `phase_diagram`.

    Returns:
        A matplotlib figure; `diagram.rows()` are its numbers.

    Example:
        >>> import numpy as np, torch, analysis, rdgraph as rd
        >>> op = rd.generators.path(4).operator("symmetric", dtype=torch.float64)
        >>> diagram = analysis.phase_diagram("FB", op, np.array([0.5, 1.0]), np.array([0.5, 0.75]), T=10.0)
        >>> figure = analysis.phase_figure(diagram)
        >>> [panel.get_title() for panel in figure.axes]
        ['predicted from the spectrum', 'simulated']
    """
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    figure = Figure(figsize=(10.0, 5.2), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    x, y = diagram.alphas, diagram.betas
    colours, norm = ListedColormap(COLOURS), BoundaryNorm(np.arange(5) - 0.5, 4)
    for panel, classes, title in zip(
        panels, (diagram.predicted, diagram.simulated), ("predicted from the spectrum", "simulated"), strict=True
    ):
        panel.pcolormesh(x, y, classes, cmap=colours, norm=norm, shading="nearest", rasterized=True)
        for border in diagram.borders:
            panel.plot(border.x, border.y, color="black", lw=1.4)
        for tie in diagram.ties:
            panel.plot(tie.x, tie.y, color="black", lw=1.2, ls="--")
        panel.set(title=title, xlabel=plain(diagram.names[0]), xlim=(x.min(), x.max()), ylim=(y.min(), y.max()))
    hatched = diagram.vanishing & (diagram.predicted == GROWS)
    occurring = np.union1d(diagram.predicted, diagram.simulated)
    handles: list[Patch | Line2D] = [Patch(color=COLOURS[k], label=_label(CLASSES[k])) for k in occurring]
    handles.append(Line2D([], [], color="black", lw=1.4, label="border, closed form"))
    if diagram.ties:
        handles.append(Line2D([], [], color="black", lw=1.2, ls="--", label="tie with the kernel"))
    if hatched.any() and not hatched.all() and min(hatched.shape) > 1:
        panels[0].contourf(x, y, hatched.astype(float), levels=[0.5, 1.5], colors="none", hatches=["//"])
        handles.append(Patch(facecolor="none", edgecolor="black", hatch="//", label="... normalised energy -> 0"))
    panels[0].set_ylabel(plain(diagram.names[1]))
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), frameon=False)
    step = "" if diagram.step is None else f", step {diagram.step:g}"
    op = diagram.operator
    figure.suptitle(
        f"{plain(diagram.system.name or str(diagram.system))} on {op.num_nodes} nodes ({op.normalisation}),"
        f" {diagram.method}{step}, T = {diagram.T:g}; away from borders {diagram.agreement:.2%} agree",
        fontsize=11,
    )
    return figure


def _label(name: str) -> str:
    """A class in words; what grows does so exponentially, for the system is linear."""
    return f"{name} (exponentially)" if name == CLASSES[GROWS] else name

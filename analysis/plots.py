"""Pictures in one line, for notebooks: response, phase, energy, state, animate; each returns matplotlib's object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from analysis.figure_files import DASHES, PALETTE, plain
from analysis.gain_curves import response_figure
from analysis.measures.energies import dirichlet_energy, normalised_energy
from analysis.phases.diagram import phase_diagram, swept_names
from analysis.phases.picture import phase_figure
from analysis.phases.reaction_grid import reaction_diagram, reaction_figure
from rdgraph.errors import InvalidArgument
from rdgraph.graphs import generators
from rdgraph.graphs.graph import Graph
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.solution import Solution
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

#: The default value of coefficients, and that of alpha, at which diffusion leaves visible differences.
USUAL, USUAL_ALPHA = 1.0, 0.5
#: Points in time of an energy, and edges that are drawn at most.
TIMES, MOST_EDGES = 81, 20_000
#: Milliseconds between two pictures of an animation.
INTERVAL = 60


def response(
    *systems: System | str, T: float = 3.5, step: float = 0.75, values: Mapping[str, float] | None = None
) -> Figure:
    """Filter responses of the exact flow, Euler and RK4.

    Args:
        systems: Names of the catalogue, lines of text or `System`s, each with a response.
        T: The end time.
        step: The step of Euler and RK4.
        values: Values of the coefficients; by default 1, and 1/2 for alpha.

    Returns:
        A matplotlib figure.

    Raises:
        NotApplicable: For a system without a response.

    Example:
        >>> [panel.get_title().partition("\\n")[0] for panel in response("BS", "-a*L@H").axes]
        ['BS', '-a*L@H']
    """
    parsed = [parse(system) for system in systems]
    numbers: dict[str, float] = {}
    for system in parsed:
        numbers |= _usual_numbers(system, values)
    methods = (("exact", None), ("euler", step), ("rk4", step))
    return response_figure(parsed, T=T, values=numbers, methods=methods)[0]


def phase(
    system: System | str,
    graph: Graph | None = None,
    *,
    axes: tuple[str, str] | None = None,
    values: Mapping[str, float] | None = None,
    end: float = 2.0,
    points: int = 60,
    **options: Any,
) -> Figure:
    """Which coefficients smooth, sharpen or grow on a graph, or of a reaction settle or blow up: predicted, simulated.

    Args:
        system: A name of the catalogue, a line of text or a `System` of one field.
        graph: The graph; by default a ring of nine nodes.
        axes: The two coefficients that are swept, the first in (0, end], the second in [-end, end].
        values: Values of the other coefficients.
        end: The end of the axes.
        points: The number of points along each axis.
        options: Options of `analysis.phase_diagram`, or of `analysis.reaction_diagram` for a nonlinear reaction.

    Returns:
        A matplotlib figure.

    Raises:
        NotApplicable: For a system without a symbol.
        InvalidArgument: For a coefficient that is not swept and has no value.

    Example:
        >>> figure = phase("-a*L@H + b*A@H", points=8, T=5.0)
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('a', 'b')
    """
    system, on_graph = parse(system), graph or generators.ring(9)
    names = axes or swept_names(system, values)
    x, y = np.linspace(0, end, points + 1)[1:], np.linspace(-end, end, points)
    if system.is_single and not system.structure.linear:
        op = on_graph.operator("row", dtype=torch.float64)
        return reaction_figure(reaction_diagram(system, op, x, y, names=names, values=values, **options))
    op = on_graph.operator("symmetric", dtype=torch.float64)
    return phase_figure(phase_diagram(system, op, x, y, names=names, values=values, **options))


def energy(
    *systems: System | str,
    graph: Graph | None = None,
    H0: Any = None,
    T: float = 10.0,
    values: Mapping[str, float] | None = None,
    normalised: bool = False,
    seed: int = 0,
) -> Figure:
    """The Dirichlet energy of runs over time, on a logarithmic scale.

    Args:
        systems: Systems of one field each: names of the catalogue, lines of text or `System`s.
        graph: The graph; by default a grid of 8 x 8 nodes.
        H0: The start (n, channels), or (n,); by default random numbers in [0, 1].
        T: The end time.
        values: Values of the coefficients; by default 1, and 1/2 for alpha.
        normalised: Whether to divide by the norm of the state.
        seed: The seed of the random start.

    Returns:
        A matplotlib figure; a run that blows up ends where it does.

    Example:
        >>> line, = energy("diffusion", T=1.0).axes[0].lines
        >>> values = line.get_ydata()
        >>> bool((np.diff(values) < 0).all())
        True
    """
    from matplotlib.figure import Figure

    if not systems:
        raise InvalidArgument("expected at least one system, got none; as in energy('BS')")
    on_graph = graph or generators.grid(8, 8)
    op, plain_op = (on_graph.operator(kind, dtype=torch.float64) for kind in ("symmetric", "none"))
    start = _start(H0, on_graph.num_nodes, seed)
    times = np.linspace(0.0, T, TIMES)
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    panel = figure.subplots()
    for k, source in enumerate(systems):
        system = parse(source)
        field = lower(system, op, _usual_numbers(system, values))
        run = solve(field, start, [0.0, T], save_at=times.tolist())
        measure = normalised_energy if normalised else dirichlet_energy
        energies = torch.stack([measure(state, op if normalised else plain_op) for state in run.states]).numpy()
        dashes, colour = DASHES[k // len(PALETTE) % len(DASHES)], PALETTE[k % len(PALETTE)]
        shown = np.where(energies > 0, energies, np.nan)
        panel.plot(times, shown, ls=dashes, color=colour, label=plain(system.name or str(system)))
    what = "normalised energy" if normalised else "Dirichlet energy"
    panel.set(yscale="log", xlabel="t", ylabel=what, xlim=(0, T))
    panel.legend(frameon=False, fontsize=9)
    return figure


def state(H: Any, graph: Graph, *, channel: int = 0, positions: Any = None) -> Figure:
    """One channel of a state as colours of the nodes.

    Args:
        H: The state (n, channels), or (n,).
        graph: The graph.
        channel: The channel that is drawn.
        positions: (n, 2) coordinates of the nodes; computed from the graph by default.

    Returns:
        A matplotlib figure.

    Example:
        >>> figure = state(np.arange(4.0), generators.ring(4))
        >>> figure.axes[0].collections[-1].get_array().tolist()
        [0.0, 1.0, 2.0, 3.0]
    """
    values = _channel(_numbers(H)[None] if _numbers(H).ndim < 3 else _numbers(H), graph, channel)[-1]
    figure, _ = _drawn(values, graph, positions, (float(np.nanmin(values)), float(np.nanmax(values))))
    return figure


def animate(
    run: Solution | Any, graph: Graph, *, channel: int = 0, positions: Any = None, interval: int = INTERVAL
) -> FuncAnimation:
    """The states of a run, one after the other; `.to_jshtml()` shows them in a notebook, `.save(...)` in a file.

    Args:
        run: A `Solution` of one member, or states (times, n, channels).
        graph: The graph.
        channel: The channel that is drawn.
        positions: (n, 2) coordinates of the nodes; computed from the graph by default.
        interval: Milliseconds between states.

    Returns:
        A matplotlib animation.

    Example:
        >>> film = animate(np.arange(8.0).reshape(2, 4, 1), generators.ring(4))
        >>> film.to_jshtml().count("data:image/png")
        2
    """
    from matplotlib.animation import FuncAnimation

    states = run.states if isinstance(run, Solution) else run
    values = _channel(_numbers(states), graph, channel)
    times = run.times.cpu().numpy() if isinstance(run, Solution) else np.arange(len(values))
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise InvalidArgument("expected states with finite numbers, got none; the run may have blown up at once")
    figure, nodes = _drawn(values[0], graph, positions, (float(finite.min()), float(finite.max())))
    title = figure.axes[0].set_title(f"t = {times[0]:.3g}")

    def show(k: int) -> Sequence[Any]:
        nodes.set_array(values[k])
        title.set_text(f"t = {times[k]:.3g}")
        return nodes, title

    return FuncAnimation(figure, show, frames=len(values), interval=interval, blit=False)


# ---------------------------------------------------------------------- parts
def _usual_numbers(system: System, given: Mapping[str, float] | None = None) -> dict[str, float]:
    """A number for every coefficient of a system: the given one, else 1, and 1/2 for alpha.

    >>> _usual_numbers(parse("BS"), {"beta": 3.0})
    {'alpha': 0.5, 'beta': 3.0}
    """
    known = given or {}
    return {n: float(known.get(n, USUAL_ALPHA if n == "alpha" else USUAL)) for n in system.coefficients}


def _start(H0: Any, nodes: int, seed: int) -> Tensor:
    if H0 is None:
        return torch.as_tensor(np.random.default_rng(seed).uniform(size=(nodes, 1)))
    start = torch.as_tensor(_numbers(H0), dtype=torch.float64)
    start = start[:, None] if start.ndim == 1 else start
    if start.ndim != 2 or len(start) != nodes:
        raise InvalidArgument(f"expected a start ({nodes}, channels), got {tuple(start.shape)}; one row per node")
    return start


def _numbers(values: Any) -> np.ndarray:
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    return array[:, None] if array.ndim == 1 else array


def _channel(states: np.ndarray, graph: Graph, channel: int) -> np.ndarray:
    """One channel (times, n) of states (times, n, channels)."""
    if states.ndim != 3 or states.shape[1] != graph.num_nodes:
        raise InvalidArgument(
            f"expected states (times, {graph.num_nodes}, channels) of one member, got {states.shape}; take one member, "
            "as in states[:, k]"
        )
    if not 0 <= channel < states.shape[2]:
        raise InvalidArgument(f"expected a channel in 0..{states.shape[2] - 1}, got {channel}")
    return np.asarray(states[:, :, channel], dtype=float)


def _drawn(
    values: np.ndarray, graph: Graph, positions: Any, limits: tuple[float, float]
) -> tuple[Figure, PathCollection]:
    """The graph with coloured nodes."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    places = _places(graph) if positions is None else np.asarray(positions, dtype=float)
    if places.shape != (graph.num_nodes, 2):
        raise InvalidArgument(f"expected positions ({graph.num_nodes}, 2), got {places.shape}")
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    panel = figure.subplots()
    source, target = graph.edge_index
    edges = np.stack([places[source], places[target]], axis=1)[source <= target if graph.is_undirected else ...]
    panel.add_collection(LineCollection(list(edges[:MOST_EDGES]), colors="0.8", linewidths=0.6, zorder=1))
    size = float(np.clip(12_000 / graph.num_nodes, 4, 160))
    nodes = panel.scatter(places[:, 0], places[:, 1], c=values, s=size, cmap="viridis", zorder=2)
    nodes.set_clim(*limits)
    panel.set_axis_off()
    panel.set_aspect("equal", adjustable="datalim")
    figure.colorbar(nodes, ax=panel, shrink=0.8)
    return figure, nodes


def _places(graph: Graph) -> np.ndarray:
    """Positions of the nodes by their distances along edges, or for many nodes by the lowest modes of L."""
    import networkx as nx

    drawn_graph = nx.Graph()
    drawn_graph.add_nodes_from(range(graph.num_nodes))
    drawn_graph.add_edges_from(graph.edge_index.T.tolist())
    layout = nx.kamada_kawai_layout if graph.num_nodes <= 150 else nx.spectral_layout
    positions = layout(drawn_graph)
    return np.array([positions[k] for k in range(graph.num_nodes)])

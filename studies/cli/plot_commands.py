"""`rdgraph plot`: filter responses, phase diagrams and dispersion relations as figures, with their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.status_line import StatusLine
from studies.cli.options import EQUATION_SETTINGS, Equation, GraphName, Values, read_numbers
from studies.runs.boundary import say
from studies.runs.libraries import require
from studies.stability.named_graph import WORDS, named_graph

if TYPE_CHECKING:
    import numpy as np

    from rdgraph.graphs.graph import Graph
    from rdgraph.theory.patterns.dispersion import Dispersion

plot = typer.Typer(help="Draw figures (png, pdf and the numbers as csv).", no_args_is_help=True)

console = Console()
errors = Console(stderr=True)


@plot.command("response", context_settings=EQUATION_SETTINGS)
def plot_response(
    equations: Annotated[
        list[str] | None,
        typer.Argument(metavar="EQUATION", help="Equations or names.  [default: all linear named ones]"),
    ] = None,
    time: Annotated[float, typer.Option("--time", metavar="T", help="End time.")] = 3.5,
    step: Annotated[float, typer.Option("--step", help="Step size of Euler's method and RK4.")] = 0.75,
    values: Values = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for response.png, .pdf and .csv.")] = Path("runs/response"),
) -> None:
    """Draw filter responses: the exact flow, Euler's method and RK4.

    Example: rdgraph plot response BS --time 3 --step 0.5
    """
    with StatusLine("drawing responses", console=errors):
        from analysis.figure_files import save_figure
        from analysis.gain_curves import curve_rows, response_figure
        from rdgraph.systems.catalogue import catalogue
        from rdgraph.systems.parser import parse

        numbers = {"alpha": 0.5, "beta": 1.0, **read_numbers(values)}
        known = [s for s in catalogue.single.values() if s.has_response and set(s.coefficients) <= set(numbers)]
        systems = [parse(e) for e in equations] if equations else known
        methods = (("exact", None), ("euler", step), ("rk4", step))
        figure, curves = response_figure(systems, T=time, values=numbers, methods=methods)
        paths = save_figure(figure, out, "response", curve_rows(curves))
    for path in paths:
        say(console, f"wrote {path}")


@plot.command("phase", context_settings=EQUATION_SETTINGS)
def plot_phase(
    equation: Equation = "BS",
    graph: GraphName = "ring:9",
    axes: Annotated[
        str | None,
        typer.Option("--axes", metavar="X,Y", help="The two coefficients to sweep.  [default: the first two]"),
    ] = None,
    values: Values = None,
    end: Annotated[
        float, typer.Option("--end", metavar="N", help="Sweep the first coefficient to N, the second from -N to N.")
    ] = 2.0,
    points: Annotated[int, typer.Option("--points", help="Number of values along each axis.")] = 100,
    step: Annotated[float, typer.Option("--step", help="Step size of RK4.")] = 0.25,
    seed: Annotated[int, typer.Option("--seed", help="Seed of a random graph and the initial state.")] = 0,
    start: Annotated[
        str, typer.Option("--start", metavar="LOW:HIGH", help="Range of the initial state, for nonlinear reactions.")
    ] = "0.1:0.9",
    out: Annotated[Path, typer.Option("--out", help="Folder for phase.png, .pdf and .csv.")] = Path("runs/phase"),
) -> None:
    """Draw a phase diagram over two coefficients.

    Predicted and simulated: linear equations smooth, sharpen or grow; reactions settle or blow up.

    Example: rdgraph plot phase BS --points 60
    """
    require("a phase diagram", "torch")
    with StatusLine("reading the equation", console=errors):
        import torch

        from analysis.figure_files import save_figure
        from analysis.phases.diagram import phase_diagram, swept_names
        from analysis.phases.picture import phase_figure
        from rdgraph.run.solvers.trackers import ProgressBar
        from rdgraph.systems.parser import parse

        numbers, system = read_numbers(values), parse(equation)
        if not system.is_single:
            raise NotApplicable(
                f"plot phase draws equations of one field, and this one has {len(system.fields)}; rdgraph study atlas "
                "draws the regimes of several fields (set its labels, systems, values, across and up)"
            )
        names = _two_names(axes) if axes else swept_names(equation, numbers)
    say(errors, f"{points} x {points} values of {names[0]} and {names[1]}")
    sweep = Sweep(equation, names, numbers, named_graph(graph, seed), end, points, step, seed)
    if not system.structure.linear:
        _plot_reaction(sweep, read_interval(start), out)
        return
    diagram = phase_diagram(
        equation, sweep.graph.operator("symmetric", dtype=torch.float64), *sweep.values(), names=names,
        values=numbers, method="rk4", step=step, seed=seed,
        trackers=[ProgressBar("simulating", console=errors)],
    )  # fmt: skip
    share = f"{diagram.agreement:.2%} of those away from a border"
    say(console, f"{points} x {points} runs: {share} behaved as predicted")
    for path in save_figure(phase_figure(diagram), out, "phase", diagram.rows()):
        say(console, f"wrote {path}")


def _two_names(text: str) -> tuple[str, str]:
    """Two names, from NAME,NAME.

    >>> _two_names("a, b")
    ('a', 'b')
    """
    first, sign, second = (part.strip() for part in text.partition(","))
    if not (first and sign and second):
        raise InvalidArgument(f"expected two coefficients separated by a comma, as in alpha,beta, got {text!r}")
    return first, second


@dataclass(frozen=True)
class Sweep:
    """A sweep over two coefficients of an equation on a graph, with numbers for the others."""

    equation: str
    names: tuple[str, str]
    numbers: Mapping[str, float]
    graph: Graph
    end: float
    points: int
    step: float
    seed: int

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """The values along both axes."""
        import numpy as np

        return np.linspace(0, self.end, self.points + 1)[1:], np.linspace(-self.end, self.end, self.points)


def _plot_reaction(sweep: Sweep, start: tuple[float, float], out: Path) -> None:
    """Write the phase diagram of a nonlinear reaction on the row-normalised graph."""
    import torch

    from analysis.figure_files import save_figure
    from analysis.phases.reaction_grid import reaction_diagram, reaction_figure

    op = sweep.graph.operator("row", dtype=torch.float64)
    with StatusLine("simulating", console=errors):
        diagram = reaction_diagram(
            sweep.equation, op, *sweep.values(), names=sweep.names, values=sweep.numbers, start=start,
            step=sweep.step, seed=sweep.seed,
        )  # fmt: skip
    starts = f"[{start[0]:g}, {start[1]:g}]"
    share = f"{diagram.is_predicted.mean():.2%} have a predicted outcome for every start in {starts}"
    agreeing = f"{diagram.agreement:.2%} of these behaved as predicted"
    say(console, f"{sweep.points} x {sweep.points} runs: {share}; {agreeing}")
    for path in save_figure(reaction_figure(diagram), out, "phase", diagram.rows()):
        say(console, f"wrote {path}")


def read_interval(text: str) -> tuple[float, float]:
    """Two numbers, from LOW:HIGH.

    >>> read_interval("-0.5:1.5")
    (-0.5, 1.5)
    """
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise InvalidArgument(f"expected LOW:HIGH, got {text!r}; write --start 0.1:0.9") from None


@plot.command("dispersion", context_settings=EQUATION_SETTINGS)
def plot_dispersion(
    equation: Equation,
    values: Values = None,
    graph: Annotated[str | None, typer.Option("--graph", help=f"Also mark the modes of a graph: {WORDS}.")] = None,
    normalisation: Annotated[str, typer.Option("--normalisation", help="Normalisation of the graph.")] = "row",
    end: Annotated[float, typer.Option("--end", help="Largest λ.")] = 2.0,
    seed: Annotated[int, typer.Option("--seed", help="Seed of a random graph.")] = 0,
    out: Annotated[Path, typer.Option("--out", help="Folder for dispersion.png, .pdf and .csv.")] = Path(
        "runs/dispersion"
    ),
) -> None:
    """Draw growth rates over λ at all constant steady states.

    Example: rdgraph plot dispersion Schnakenberg --graph torus:16:16
    """
    with StatusLine("finding steady states and growth rates", console=errors):
        from analysis.figure_files import save_figure
        from rdgraph.theory.patterns.dispersion import dispersion_curves, dispersion_figure

        relations = _relations(equation, read_numbers(values), graph, normalisation, end, seed)
    for relation in relations:
        say(console, f"{relation.state or 'any state'}: {relation.kind}")
    for path in save_figure(dispersion_figure(relations), out, "dispersion", dispersion_curves(relations)):
        say(console, f"wrote {path}")


def _relations(
    equation: str, given: dict[str, float], graph: str | None, normalisation: str, end: float, seed: int
) -> list[Dispersion]:
    """Dispersion relations at all steady states; systems of the catalogue have default coefficients."""
    from rdgraph.systems.catalogue import catalogue
    from rdgraph.systems.parser import parse
    from rdgraph.theory.patterns.dispersion import Dispersion, dispersion
    from rdgraph.theory.patterns.steady_states import steady_states

    system = parse(equation)
    defaults = catalogue.entry(equation).parameters if equation in catalogue else {}
    numbers = {**defaults, **given}
    operator = None
    if graph is not None:
        require("the modes of a graph", "torch")
        import torch

        operator = named_graph(graph, seed).operator(normalisation, dtype=torch.float64)
    first = dispersion(system, numbers, operator=operator, to=end)
    if not isinstance(first, Dispersion):
        raise NotApplicable("the growth rates depend on further operators, not on λ alone; use rd.dispersion(...)")
    if first.state is None:
        return [first]
    relations = [dispersion(system, numbers, k, operator, to=end) for k in range(len(steady_states(system, numbers)))]
    return [relation for relation in relations if isinstance(relation, Dispersion)]

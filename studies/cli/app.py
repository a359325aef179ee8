"""The command line: catalogue, show, analyse, verify, preflight, plot, data, presets, train, study."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rdgraph.errors import RdgraphError
from studies.catalogue import STUDIES, load
from studies.cli import pages
from studies.cli.data_commands import data
from studies.cli.preset_commands import presets_app
from studies.cli.train_commands import train_command
from studies.runs.boundary import reported, say
from studies.runs.libraries import require
from studies.runs.progress import progress
from studies.runs.run_folder import Study

if TYPE_CHECKING:
    from rdgraph.graphs.graph import Graph

#: Equations may begin with a minus sign, so no command has one-letter options.
EQUATION_SETTINGS = {"ignore_unknown_options": True}

app = typer.Typer(
    name="rdgraph",
    help="Reaction-diffusion on graphs: one line of maths in, verified and analysed.\n\n"
    "Equations use numpy's notation: H is the state, H0 the initial state, A the adjacency operator, L = I - A; "
    '@ applies an operator, * and ** act elementwise. Example: rdgraph analyse "-alpha*L@H + beta*H*(1 - H)"',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
plot = typer.Typer(help="Draw figures (png, pdf and the numbers as csv).", no_args_is_help=True)
app.add_typer(plot, name="plot")
app.add_typer(data, name="data")
app.add_typer(presets_app, name="presets")

console = Console()
errors = Console(stderr=True)

Equation = Annotated[
    str, typer.Argument(help="An equation in the language, or a name of the catalogue.", metavar="EQUATION")
]
Coefficients = Annotated[
    list[str] | None,
    typer.Option(
        "--coefficient", metavar="NAME[=KIND]", help="Declare a coefficient: scalar (default), channel, node or matrix."
    ),
]
Assumptions = Annotated[
    list[str] | None,
    typer.Option(
        "--assume", metavar="TEXT", help='Assume a sign or relation, as in "beta<0", "beta real", "beta <= alpha".'
    ),
]
Values = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a coefficient to a number.")]
Smt2 = Annotated[
    Path | None,
    typer.Option("--smt2", metavar="FOLDER", help="Write every proof obligation as an SMT-LIB file into a folder."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")]


def main() -> None:
    """Entry point: what a user can do something about is shown as text, never as a traceback."""
    with reported(errors):
        app()


def _print_version(wanted: bool) -> None:
    if wanted:
        import rdgraph

        say(console, f"rdgraph {rdgraph.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """What holds for all commands."""


@app.command("catalogue")
def catalogue_command(as_json: AsJson = False) -> None:
    """List the named systems: equation and source."""
    from rdgraph.systems.catalogue import catalogue

    if as_json:
        entries = [
            {"name": e.name, "title": e.title, "equation": e.equation, "source": e.source, "note": e.note}
            for e in catalogue.entries.values()
        ]
        _print_json(entries)
    else:
        console.print(pages.catalogue_table(catalogue.entries.values()))


@app.command()
def show(name: Annotated[str, typer.Argument(help="A name of the catalogue, such as BS.")]) -> None:
    """Show one catalogued system: equation, source, analysis."""
    from rdgraph.reports.summary import analyse
    from rdgraph.systems.catalogue import catalogue

    entry = catalogue.entry(name)
    console.print(pages.entry_panel(entry))
    console.print(pages.analysis_table(analyse(entry.system)))


@app.command("analyse", context_settings=EQUATION_SETTINGS)
def analyse_command(
    equation: Equation,
    coefficient: Coefficients = None,
    assume: Assumptions = None,
    normalisation: Annotated[
        list[str] | None, typer.Option("--normalisation", help="Bounds for these; symmetric and row by default.")
    ] = None,
    as_json: AsJson = False,
    smt2: Smt2 = None,
) -> None:
    """Answer every question about an equation: symbol, response, Lipschitz, existence, boxes, step limits ..."""
    from rdgraph.reports.summary import analyse
    from rdgraph.systems.parser import parse

    system = parse(equation, _declared(coefficient), assume=assume or [])
    with _obligations(smt2):
        result = analyse(system, normalisation) if normalisation else analyse(system)
    if as_json:
        _print_json(result.to_dict())
    else:
        console.print(pages.analysis_table(result))


@app.command()
def verify(
    name: Annotated[str, typer.Argument(help="A system (BS), a claim (M1.4), a group (M1), or all.")] = "all",
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a markdown table.")] = False,
    evidence: Annotated[bool, typer.Option("--evidence", help="Show every check behind each verdict.")] = False,
    smt2: Smt2 = None,
) -> None:
    """Decide the registered claims; exit 0 if every one was decided as its evidence says, 1 otherwise."""
    from rdgraph.claims import markdown, select
    from rdgraph.claims import verify as run

    with _obligations(smt2), progress(errors) as bar:
        task = bar.add_task("deciding claims", total=len(select(name)))
        claims = run(name, progress=lambda claim: bar.update(task, advance=1, description=f"decided {claim.id}"))
    if as_json:
        _print_json([c.to_dict() for c in claims])
    elif as_markdown:
        say(console, markdown(claims))
    else:
        console.print(pages.claims_table(claims, evidence=evidence))
    if not all(c.as_expected for c in claims):
        raise typer.Exit(1)


@app.command("preflight", context_settings=EQUATION_SETTINGS)
def preflight_command(
    equation: Equation,
    time: Annotated[float, typer.Option("--time", help="End time T.")] = 1.0,
    method: Annotated[
        str, typer.Option("--method", help="auto (it follows from the equation), or any integrator by name.")
    ] = "auto",
    step: Annotated[float | None, typer.Option("--step", help="Step size; auto needs none.")] = None,
    normalisation: Annotated[
        str, typer.Option("--normalisation", help="symmetric, row, column or one that was registered.")
    ] = "symmetric",
    coefficient: Coefficients = None,
    assume: Assumptions = None,
    values: Values = None,
    as_json: AsJson = False,
) -> None:
    """One page before a run: what will happen, and is it safe? Exit 1 if it is unsafe."""
    from rdgraph.reports.findings import UNSAFE
    from rdgraph.reports.preflight_report import preflight
    from rdgraph.systems.parser import parse

    system = parse(equation, _declared(coefficient), assume=assume or [])
    report = preflight(
        system, normalisation=normalisation, T=time, method=method, step=step, coefficients=_numbers(values)
    )
    if as_json:
        _print_json(report.to_dict())
    else:
        console.print(pages.report_page(report))
    if report.status == UNSAFE:
        raise typer.Exit(1)


@plot.command("response", context_settings=EQUATION_SETTINGS)
def plot_response(
    equations: Annotated[
        list[str] | None, typer.Argument(help="Equations or names; without any, the linear catalogue.")
    ] = None,
    time: Annotated[float, typer.Option("--time", help="End time T.")] = 3.5,
    step: Annotated[float, typer.Option("--step", help="Step of the discretised curves.")] = 0.75,
    values: Values = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for response.png, .pdf and .csv.")] = Path("runs/response"),
) -> None:
    """Filter responses on lam in [0, 2]: the exact flow and what Euler and RK4 make of it."""
    from analysis.figures import curve_rows, response_figure, save_figure
    from rdgraph.systems.catalogue import catalogue
    from rdgraph.systems.parser import parse

    systems = [parse(e) for e in equations] if equations else [s for s in catalogue.values() if s.has_response]
    numbers = {"alpha": 0.5, "beta": 1.0, **_numbers(values)}
    methods = (("exact", None), ("euler", step), ("rk4", step))
    figure, curves = response_figure(systems, T=time, coefficients=numbers, methods=methods)
    for path in save_figure(figure, out, "response", curve_rows(curves)):
        say(console, f"wrote {path}")


@plot.command("phase", context_settings=EQUATION_SETTINGS)
def plot_phase(
    equation: Equation = "BS",
    graph: Annotated[
        str, typer.Option("--graph", help="path:N, ring:N, complete:N, star:N, or csbm, the paper's random graph.")
    ] = "ring:9",
    end: Annotated[float, typer.Option("--end", help="alpha in (0, END], beta in [-END, END].")] = 2.0,
    points: Annotated[int, typer.Option("--points", help="Members along each axis, all run as one batch.")] = 200,
    step: Annotated[float, typer.Option("--step", help="Step of RK4, by which the members are run.")] = 0.25,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random graph and of the start.")] = 0,
    out: Annotated[Path, typer.Option("--out", help="Folder for phase.png, .pdf and .csv.")] = Path("runs/phase"),
) -> None:
    """Which coefficients of a linear system smooth, sharpen or blow up on a graph: predicted and simulated."""
    require("a phase diagram", "torch")
    import numpy as np
    import torch

    from analysis.figures import save_figure
    from analysis.phases.diagram import phase_diagram
    from analysis.phases.picture import phase_figure

    op = _named_graph(graph, seed).operator("symmetric", dtype=torch.float64)
    alphas, betas = np.linspace(0, end, points + 1)[1:], np.linspace(-end, end, points)
    diagram = phase_diagram(equation, op, alphas, betas, method="rk4", step=step, seed=seed)
    share = f"{diagram.agreement:.2%} of the members away from a border"
    say(console, f"{points} x {points} members: {share} were simulated as predicted")
    for path in save_figure(phase_figure(diagram), out, "phase", diagram.rows()):
        say(console, f"wrote {path}")


def _named_graph(text: str, seed: int) -> Graph:
    """NAME:NODES, or csbm for the random graph of the GREAD paper's appendix."""
    from rdgraph.graphs import generators

    if text == "csbm":
        return generators.csbm(seed).graph
    name, _, nodes = text.partition(":")
    if name not in ("path", "ring", "complete", "star") or not nodes.isdigit():
        raise RdgraphError(f"expected path:N, ring:N, complete:N, star:N or csbm, got {text!r}; write --graph ring:20")
    found: Graph = getattr(generators, name)(int(nodes))
    return found


app.command("train")(train_command)


@app.command("study")
def study_command(
    name: Annotated[str | None, typer.Argument(help="A study; without one, the studies and their questions.")] = None,
    small: Annotated[
        bool, typer.Option("--small", help="Seconds instead of minutes: fewer and smaller cases.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the run.", show_default="runs/NAME, runs/NAME-small")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same tables.")] = 0,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda or cuda:N.")] = "cpu",
) -> None:
    """Do a study: numbers, figures and a report page in a folder; run it again to resume. Ctrl-C is safe."""
    if name is None:
        console.print(_studies_table([load(n) for n in STUDIES]))
        return
    study = load(name)
    from studies.runs.run_folder import execute  # after the study is known: a wrong name is answered at once

    folder = out or Path("runs") / (f"{name}-small" if small else name)
    try:
        report = execute(study, folder, small=small, seed=seed, device=device, console=errors)
    except KeyboardInterrupt:
        say(errors, f"interrupted; {folder} is valid, and the same command resumes it")
        raise typer.Exit(130) from None
    say(console, f"wrote {report}")


def _studies_table(studies: list[Study]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title="Studies: rdgraph study NAME", title_justify="left")
    for heading, style in (("name", "bold"), ("title", "cyan"), ("question", "")):
        table.add_column(heading, style=style, overflow="fold")
    for study in studies:
        table.add_row(study.NAME, escape(study.TITLE), escape(study.QUESTION))
    return table


@contextmanager
def _obligations(folder: Path | None) -> Iterator[None]:
    """Record what the judge is asked in the block and write it to a folder, if one is given."""
    if folder is None:
        yield
        return
    from rdgraph.decisions.judge import recorded
    from studies.cli.obligations import obligation_files, write_obligations

    obligation_files(folder)  # a folder that cannot be used is refused before the work
    with recorded() as found:
        yield
    errors.print(write_obligations(found, folder), highlight=False, markup=False, soft_wrap=True)


def _declared(texts: list[str] | None) -> dict[str, str]:
    """NAME or NAME=KIND, as given on the command line."""
    return {name.strip(): kind.strip() or "scalar" for name, _, kind in (t.partition("=") for t in texts or [])}


def _numbers(texts: list[str] | None) -> dict[str, float]:
    found = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise RdgraphError(f"expected NAME=VALUE with a number, got {text!r}; write --set alpha=0.5") from None
        if not sign:
            raise RdgraphError(f"expected NAME=VALUE, got {text!r}; write --set alpha=0.5")
    return found


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    main()

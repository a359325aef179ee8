"""The command line: catalogue, show, analyse, verify, preflight, conform, plot, data, presets and the rest."""

from __future__ import annotations

import atexit
import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rdgraph.plugins import load_plugins
from rdgraph.status_line import StatusLine
from studies.cli import printed_pages
from studies.cli.compare_commands import compare_command
from studies.cli.conform_commands import conform_command
from studies.cli.data_commands import data
from studies.cli.discover_commands import discover_command
from studies.cli.distil_commands import distil_command
from studies.cli.explore_commands import explore_command
from studies.cli.ledger_commands import ledger_app
from studies.cli.model_commands import models_command
from studies.cli.options import EQUATION_SETTINGS, Command, Equation, Values, read_numbers
from studies.cli.plot_commands import plot
from studies.cli.preset_commands import presets_app
from studies.cli.search_commands import search_command
from studies.cli.study_commands import study_command
from studies.cli.train_commands import predict_command, train_command
from studies.runs.boundary import reported, say

app = typer.Typer(
    name="rdgraph",
    help="Reaction-diffusion on graphs: one line of maths in, verified and analysed.\n\n"
    "Equations use numpy's notation: H is the state, H0 the initial state, A the adjacency operator, L = I - A; "
    "@ applies an operator, * and ** act elementwise.\n\n"
    'Example: rdgraph analyse "-alpha*L@H + beta*H*(1 - H)"',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(plot, name="plot")
app.add_typer(data, name="data")
app.add_typer(presets_app, name="presets")
app.add_typer(ledger_app, name="ledger")

console = Console()
errors = Console(stderr=True)

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
Smt2 = Annotated[
    Path | None,
    typer.Option("--smt2", metavar="FOLDER", help="Write every proof obligation to this folder as SMT-LIB."),
]
Certificate = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="FILE", help="Write the proofs of all answers, for rdgraph-check."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")]


def main() -> None:
    """Entry point: errors that a user can mend are shown as text without a traceback."""
    atexit.register(_leave_garbage)
    with reported(errors):
        load_plugins()
        app()


def _leave_garbage() -> None:
    """At exit: skip the final garbage collection over all objects of torch and sympy.

    Libraries bound by nanobind, such as Triton's, report uncollected objects as leaks, so the collection runs for them.
    """
    values = (value for module in list(sys.modules.values()) for value in getattr(module, "__dict__", {}).values())
    if all(str(type(value).__module__) != "nanobind" for value in values):
        gc.freeze()


def _print_version(wanted: bool) -> None:
    if wanted:
        import rdgraph

        say(console, f"rdgraph {rdgraph.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options of all commands."""


@app.command("catalogue")
def catalogue_command(as_json: AsJson = False) -> None:
    """List the named systems: equation and source."""
    from rdgraph.systems.catalogue import catalogue

    if as_json:
        entries = [
            {
                "name": e.name,
                "title": e.title,
                "equation": e.equation,
                "fields": e.system.fields,
                "source": e.source,
                "note": e.note,
                "parameters": e.parameters,
                "parameters_source": e.parameters_source,
            }
            for e in catalogue.entries.values()
        ]
        _print_json(entries)
    else:
        console.print(printed_pages.catalogue_table(catalogue.entries.values()))


@app.command()
def show(name: Annotated[str, typer.Argument(help="A name from `rdgraph catalogue`, such as BS.")]) -> None:
    """Show a named system: equations, source, parameters and answers."""
    with StatusLine("reading the catalogue", console=errors):
        from rdgraph.reports.summary import analyse
        from rdgraph.systems.catalogue import catalogue

        entry = catalogue.entry(name)
    console.print(printed_pages.entry_panel(entry))
    if entry.system.is_single:
        with StatusLine("analysing", console=errors) as status:
            result = analyse(entry.system, tell=status.say)
        console.print(printed_pages.analysis_page(result))
        say(console, f"rdgraph analyse {entry.name} --all shows every answer with its conditions")
    else:
        console.print(printed_pages.system_table(entry.system))


@app.command("analyse", context_settings=EQUATION_SETTINGS)
def analyse_command(
    equation: Equation,
    coefficient: Coefficients = None,
    assume: Assumptions = None,
    normalisation: Annotated[
        list[str] | None,
        typer.Option(
            "--normalisation",
            metavar="NAME",
            help="Derive bounds for this normalisation; repeatable.  [default: symmetric, row]",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every answer with its conditions.")] = False,
    as_json: AsJson = False,
    smt2: Smt2 = None,
    certificate: Certificate = None,
) -> None:
    """Analyse an equation: filter, patterns, bounds and step limits.

    Also existence, energy and identifiability. Prints the main answers; --all prints every answer with its conditions.
    """
    with _obligations(smt2):
        with StatusLine("reading the equation", console=errors), _quick_imports():
            from rdgraph.systems.parser import parse

            system = parse(equation, _declared(coefficient), assume=assume or [])
        if not as_json:
            console.print(printed_pages.equation_line(system))  # at once: the answers take longer than reading
        with StatusLine("analysing", console=errors) as status:
            with _quick_imports():
                from rdgraph.reports.summary import NORMALISATIONS, analyse
            with _certified(certificate, f"rdgraph analyse {equation}", status):
                result = analyse(system, normalisation or NORMALISATIONS, tell=status.say)
    if as_json:
        _print_json(result.to_dict())
    else:
        console.print(printed_pages.analysis_page(result, everything=everything))
        if not everything:
            say(console, "--all shows every answer with its conditions, --json prints them for programs")


@app.command()
def verify(
    name: Annotated[str, typer.Argument(help="A system (BS), a claim (M1.4), a group (M1), or all.")] = "all",
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    evidence: Annotated[bool, typer.Option("--evidence", help="Show every check behind each verdict.")] = False,
    smt2: Smt2 = None,
    certificates: Annotated[
        Path | None,
        typer.Option("--certificates", metavar="FOLDER", help="Write the proofs of each claim, for rdgraph-check."),
    ] = None,
    coq: Annotated[Path | None, typer.Option("--coq", help="Write the claims as Coq theorems to this folder.")] = None,
) -> None:
    """Re-check the registered claims; exits with 1 on a difference."""
    from rdgraph.reports.coq.record import marks

    if coq is not None:
        _write_coq(name, coq)
        return
    with _obligations(smt2), StatusLine("deciding claims", console=errors) as status:
        from rdgraph.reports.claims import markdown, select
        from rdgraph.reports.claims import verify as run

        count = len(select(name))
        claims = []
        for number, claim in enumerate(select(name), 1):
            with _certified(certificates and certificates / f"{claim.id}.json", f"claim {claim.id}", status):
                claims += run(claim.id)
            status.say(f"decided {claim.id}", number, count)
    if as_json:
        _print_json([c.to_dict() for c in claims])
    elif as_markdown:
        say(console, markdown(claims, marks(c.id for c in claims)))
    else:
        console.print(printed_pages.claims_page(claims, evidence=evidence, marks=marks(c.id for c in claims)))
    if not all(c.as_expected for c in claims):
        raise typer.Exit(1)


def _write_coq(name: str, folder: Path) -> None:
    """The theorems of the selected claims, and the libraries they import, as files for coqc."""
    from rdgraph.reports.claims import select
    from rdgraph.reports.coq.sheets import sheets_of, write_sheets

    chosen = [sheet for statement in select(name) for sheet in sheets_of(statement.id)]
    write_sheets(folder, chosen)
    theorems = sum(len(sheet.theorems) for sheet in chosen)
    say(console, f"{len(chosen)} files with {theorems} theorems in {folder}; check them with coqc -Q {folder} Rdgraph")


@app.command("preflight", context_settings=EQUATION_SETTINGS)
def preflight_command(
    equation: Equation,
    time: Annotated[float, typer.Option("--time", metavar="T", help="End time.")] = 1.0,
    method: Annotated[
        str, typer.Option("--method", help="Integration method; auto selects one from the equation.")
    ] = "auto",
    step: Annotated[float | None, typer.Option("--step", help="Step size; optional with auto.")] = None,
    normalisation: Annotated[
        str, typer.Option("--normalisation", help="Normalisation of A: symmetric, row, column or a registered one.")
    ] = "symmetric",
    coefficient: Coefficients = None,
    assume: Assumptions = None,
    values: Values = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every finding.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a run before it starts; exits with 1 if it is unsafe."""
    with StatusLine("reading the equation", console=errors) as status:
        from rdgraph.reports.findings import UNSAFE
        from rdgraph.reports.preflight_report import preflight
        from rdgraph.systems.parser import parse

        system = parse(equation, _declared(coefficient), assume=assume or [])
        report = preflight(
            system, normalisation=normalisation, T=time, method=method, step=step, values=read_numbers(values),
            tell=status.say,
        )  # fmt: skip
    if as_json:
        _print_json(report.to_dict())
    else:
        console.print(printed_pages.report_page(report, everything=everything))
    if report.outcome == UNSAFE:
        raise typer.Exit(1)


app.command("explore", context_settings=EQUATION_SETTINGS)(explore_command)
app.command("conform", context_settings=EQUATION_SETTINGS)(conform_command)
app.command("models")(models_command)
app.command("train")(train_command)
app.command("predict")(predict_command)
app.command("compare")(compare_command)
app.command("search")(search_command)
app.command("discover")(discover_command)
app.command("distil")(distil_command)
app.command("study")(study_command)
for part in (app, plot, data, presets_app, ledger_app):
    for registered in part.registered_commands:
        registered.cls = Command


@contextmanager
def _quick_imports() -> Iterator[None]:
    """Import libraries without garbage collection, which is a fifth of the time of importing sympy."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # imported objects live until the end and need no further collection
        if was_on:
            gc.enable()


@contextmanager
def _obligations(folder: Path | None) -> Iterator[None]:
    """Record the proof obligations of the block and write them to a folder, if one is given."""
    if folder is None:
        yield
        return
    from rdgraph.reals.judge import recorded
    from studies.cli.obligations import obligation_files, write_obligations

    obligation_files(folder)  # an unusable folder is an error before the work starts
    with recorded() as asked:
        yield
    errors.print(write_obligations(asked, folder), highlight=False, markup=False, soft_wrap=True)


@contextmanager
def _certified(file: Path | None, question: str, status: StatusLine) -> Iterator[None]:
    """Record the questions to the solvers in the block and write them with proofs to a file, if one is given."""
    if file is None:
        yield
        return
    from rdgraph.reals.certificates import certified, write_certificate
    from rdgraph.reals.judge import recorded

    with recorded() as asked:
        yield
    status.say(f"proving what {question} rests on")
    certificate = certified({"question": question}, asked)
    write_certificate(file, certificate)
    proofs = [entry.get("proof") or entry.get("model") for entry in certificate["obligations"]]
    say(errors, f"wrote {file}: {len(proofs) - proofs.count(None)} of {len(proofs)} obligations proved")


def _declared(texts: list[str] | None) -> dict[str, str]:
    """The kinds of coefficients given as NAME or NAME=KIND."""
    return {name.strip(): kind.strip() or "scalar" for name, _, kind in (t.partition("=") for t in texts or [])}


def _print_json(value: object) -> None:
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""`rdgraph study`: list the studies, or run one in a folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from studies.catalogue import STUDIES, find_study, require_libraries
from studies.cli.fitted_table import RecordList
from studies.cli.options import Address, EngineName, chosen_engine
from studies.runs.boundary import say
from studies.runs.setting_changes import read_changes
from studies.runs.study import Study, execute

console = Console()
errors = Console(stderr=True)


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
    models: Annotated[
        str | None,
        typer.Option("--models", help="Networks by name, such as gcn,gcnii, for a study that takes some."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the study, as its config.toml has it."),
    ] = None,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Do a study: numbers, figures and a report page in a folder; run it again to resume. Ctrl-C is safe."""
    if name is None:
        console.print(_studies_list(STUDIES.values()))
        return
    study = find_study(name)
    require_libraries(study)
    folder = out or Path("runs") / (f"{name}-small" if small else name)
    try:
        changed = read_changes(changes or []) | ({} if models is None else {"models": read_names(models)})
        with chosen_engine(engine, address) as place:
            report = execute(
                study, folder, small=small, seed=seed, device=device, changes=changed, console=errors, engine=place
            )
    except KeyboardInterrupt:
        say(errors, f"interrupted; {folder} is valid, and the same command resumes it")
        raise typer.Exit(130) from None
    say(console, f"wrote {report}")


def read_names(text: str) -> list[str]:
    """Names with commas between them, each of a network that there is.

    >>> read_names("gcn, gat")
    ['gcn', 'gat']
    """
    from gread.settings.model_records import find_model

    return [find_model(name.strip()).name for name in text.split(",") if name.strip()]


def _studies_list(studies: Iterable[Study]) -> RecordList:
    rows = [[study.name, study.title, study.question] for study in studies]
    return RecordList("Studies: rdgraph study NAME", ("name", "title", "question"), rows, ("bold", "cyan"))

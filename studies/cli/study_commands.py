"""`rdgraph study`: list the studies, or run one in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rdgraph.errors import InvalidArgument
from studies.cli.fitted_table import RecordList
from studies.cli.options import Address, EngineName, chosen_engine
from studies.runs.boundary import interruptible, resumable, say

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
    seed: Annotated[
        int | None, typer.Option("--seed", help="The same seed gives the same tables.", show_default="0")
    ] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda or cuda:N.", show_default="cpu")] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", help="Networks by name, such as gcn,gcnii, for a study that takes some."),
    ] = None,
    equation: Annotated[
        str | None,
        typer.Option("--equation", "--reaction", help="An equation, or a name of the catalogue, for oversmoothing."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the study, as its config.toml has it."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help=r"toml as a run's config.toml: study, small, seed, device, \[settings]."
        ),
    ] = None,
    index: Annotated[
        Path | None, typer.Option("--index", metavar="FOLDER", help="Write FOLDER/index.html over the runs in it.")
    ] = None,
    retold: Annotated[
        bool,
        typer.Option(
            "--retell", help="Tell the report of a folder again by this code, on any device; measure nothing."
        ),
    ] = False,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Do a study: numbers, figures and a report page in a folder; run it again to resume. Ctrl-C is safe."""
    from studies.registered_studies import find_study, require_libraries

    if name is None and not (index or retold or config):
        console.print(_studies_list())
        return
    from studies.runs.retelling import StudyFile, read_study_file
    from studies.runs.setting_limits import read_changes
    from studies.runs.study import execute

    if index is not None:
        from studies.runs.index import write_index

        say(console, f"wrote {write_index(index)}")
        return
    if retold:
        kept = {
            "--seed": seed,
            "--device": device,
            "--models": models,
            "--equation": equation,
            "--set": changes,
            "--config": config,
        }
        refuse_beside_retell({**kept, "--engine": None if engine == "local" else engine, "--address": address})
        say(console, f"wrote {_retell(name, small, out)}")
        return
    asked = StudyFile() if config is None else read_study_file(config)
    name = name or asked.study
    if name is None:
        console.print(_studies_list())
        return
    if asked.study not in (None, name):
        raise InvalidArgument(f"expected settings of the study {name} in {config}, got those of {asked.study}")
    study = find_study(name)
    require_libraries(study)
    small = small or bool(asked.small)
    seed = seed if seed is not None else asked.seed or 0
    device = device or asked.device or "cpu"
    folder = out or _usual_folder(name, small)
    changed = asked.changes(study, small) | read_changes(changes or [])
    changed |= {} if models is None else {"models": read_names(models)}
    changed |= {} if equation is None else {"equation": equation}
    with resumable(errors, folder), chosen_engine(engine, address) as place:
        report = execute(
            study, folder, small=small, seed=seed, device=device, changes=changed, console=errors, engine=place
        )
    say(console, f"wrote {report}")


def _usual_folder(name: str, small: bool) -> Path:
    return Path("runs") / (f"{name}-small" if small else name)


def refuse_beside_retell(options: Mapping[str, object]) -> None:
    """Refuse options that ask for another measurement than the one of the folder.

    >>> refuse_beside_retell({"--seed": None, "--set": []})
    """
    given = [name for name, value in options.items() if value not in (None, [])]
    if given:
        raise InvalidArgument(f"expected --retell without {', '.join(given)}, which the folder has; leave them out")


def _retell(name: str | None, small: bool, out: Path | None) -> Path:
    """Tell the run of a study again; `small` is that of the usual folder."""
    if name is None:
        raise InvalidArgument("expected the name of a study to retell, got none; write rdgraph study NAME --retell")
    from studies.registered_studies import find_study, require_libraries
    from studies.runs.retelling import retell

    study = find_study(name)
    require_libraries(study)
    folder = out or _usual_folder(name, small)
    with interruptible(errors, f"{folder} is as it was"):
        return retell(study, folder, errors)


def read_names(text: str) -> list[str]:
    """Names with commas between them, each of a network that there is.

    >>> read_names("gcn, gat")
    ['gcn', 'gat']
    """
    from gread.settings.model_records import find_model

    return [find_model(name.strip()).name for name in text.split(",") if name.strip()]


def _studies_list() -> RecordList:
    from studies.registered_studies import STUDIES, study_records

    rows = [[record.name, record.title, record.question] for record in study_records()]
    rows += [[study.name, study.title, study.question] for study in STUDIES.added.values()]
    return RecordList("Studies: rdgraph study NAME", ("name", "title", "question"), rows, ("bold", "cyan"))

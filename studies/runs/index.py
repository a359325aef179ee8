"""An index page of the reports below a folder: `rdgraph study --index FOLDER` writes FOLDER/index.html."""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from rich.console import Console

from rdgraph.errors import FileError
from rdgraph.files import read_text, write_text
from studies.runs.boundary import reported
from studies.runs.report import ReportVerdict, as_address, fewer_colours, templates


@dataclass(frozen=True)
class IndexEntry:
    """One report on the index page."""

    address: str
    title: str
    question: str
    answer: str
    state: str
    study: str
    small: bool
    seed: int
    verdicts: tuple[ReportVerdict, ...]
    picture: str | None


def read_entry(folder: Path, root: Path) -> IndexEntry:
    """Entry of the run in `folder`, with its address relative to `root`."""
    try:
        outline = json.loads(read_text(folder / "report.json", "the outline of a report"))
        config = tomllib.loads(read_text(folder / "config.toml", "the settings of a run"))
        pictures = [folder / name for name in outline["figures"] if name.endswith(".png")]
        return IndexEntry(
            address=quote((folder / "report.html").relative_to(root).as_posix()),
            title=outline["title"],
            question=outline["question"],
            answer=outline.get("answer", ""),
            # The file `state` also knows whether the run was resumed or killed after the outline was written.
            state=read_text(folder / "state", "the state of a run").strip(),
            study=config["study"],
            small=config["small"],
            seed=config["seed"],
            verdicts=tuple(ReportVerdict(**v) for v in outline["verdicts"]),
            picture=as_address(fewer_colours(pictures[0]), "png") if pictures else None,
        )
    except FileError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError) as problem:
        raise FileError(f"the files of the run in {folder} were changed ({problem})") from None


def write_index(root: Path) -> Path:
    """Path of root/index.html, written from the runs directly below `root` in the order of their names."""
    folders = sorted(path.parent for path in root.glob("*/report.json"))
    if not folders:
        raise FileError(f"there are no runs below {root}; make one: rdgraph study grid --out {root}/grid")
    page = templates().get_template("index.html").render(entries=[read_entry(folder, root) for folder in folders])
    write_text(root / "index.html", page)
    return root / "index.html"


def main() -> None:
    """Write the index of the folder named on the command line, and print its address."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m studies.runs.index FOLDER")
    with reported(Console(stderr=True)):
        path = write_index(Path(sys.argv[1]))
    print(f"open {path.resolve()}")


if __name__ == "__main__":
    main()

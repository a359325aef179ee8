"""A page of the documentation from a finished run: `python -m studies.runs.kept_page FOLDER`.

Keeps the answer, the verdicts, the numbers of record, the settings and the environment in
studies/results/NAME.json, the main figure in docs/measured/figures/NAME.png, and writes docs/measured/NAME.md from
them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rdgraph.errors import FileError
from studies.results import pages_folder, result_link, results_folder
from studies.runs.boundary import run_program
from studies.runs.setting_limits import CHANGED, setting_text
from studies.runs.tables import Value, read_rows

#: Digits of a number that is kept.
DIGITS = 6
#: Where a page says more about what is measured, and how a verdict is reached.
EXPLAINED = {"trained_energy": "../guides/laboratory.md#trained-networks"}


def file_name(study: str) -> str:
    """The name of a study's page and results.

    >>> file_name("trained-energy")
    'trained_energy'
    """
    return study.replace("-", "_")


def collected(folder: Path) -> dict[str, Any]:
    """What a run folder says: question, answer, verdicts, settings, environment, the command that repeats it."""
    outline = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    if outline["state"] != "done":
        raise FileError(f"expected a finished run in {folder}, got one that is {outline['state']}; resume it first")
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    kept = ("python", "processors", "libraries", "gpu", "code", "seconds", "retold")
    words = [f"rdgraph study {config['study']}", *(["--small"] if config["small"] else []), f"--seed {config['seed']}"]
    words += [f"--set '{name}={setting_text(config['settings'][name])}'" for name in config.get(CHANGED, ())]
    return {
        "study": config["study"],
        "title": outline["title"],
        "command": " ".join([*words, f"--device {config['device']}"]),
        "question": outline["question"],
        "answer": outline.get("answer", ""),
        "settings": config["settings"],
        "environment": {key: environment[key] for key in kept if key in environment},
        "verdicts": outline["verdicts"],
    }


def kept_rows(folder: Path) -> dict[str, Any]:
    """The numbers of record, columns once, numbers with six digits."""
    path = folder / "results.csv"
    rows = read_rows(path) if path.is_file() else []
    return {"columns": list(rows[0]) if rows else [], "rows": [[_short(v) for v in row.values()] for row in rows]}


def _short(value: Value) -> Value | None:
    """A number as json can hold it: six digits, none where there is no number."""
    if isinstance(value, float):
        return None if value != value else float(f"{value:.{DIGITS}g}") if abs(value) != float("inf") else str(value)
    return value


def page(found: dict[str, Any]) -> str:
    """The page as Markdown: answer first, then how it was reached, the figure and the verdicts."""
    environment, name = found["environment"], file_name(found["study"])
    libraries = environment.get("libraries", {})
    where = ", ".join(f"{k} {libraries[k]}" for k in ("torch", "numpy") if k in libraries)
    retold = environment.get("retold", {}).get("code")
    told = f", told by the code {retold}" if retold else ""
    card = f" on one {environment['gpu']}" if "gpu" in environment else ""
    answers = [verdict["answer"] for verdict in found["verdicts"]]
    tally = ", ".join(f"{answers.count(a)} {a}" for a in dict.fromkeys(answers))
    explained = f" How a verdict is reached: [the laboratory]({EXPLAINED[name]})." if name in EXPLAINED else ""
    has_figure = found.get("figure", (pages_folder() / "figures" / f"{name}.png").is_file())
    lines = [
        f"# {found['title']}", "", f"**{found['answer']}**" if found["answer"] else "", "",
        f"{found['question']} {len(answers)} verdicts: {tally}.", "",
        f"`{found['command']}`{card}, {environment.get('seconds', 0):g} s in its last call, code "
        f"{environment.get('code', 'unknown')}{told}, {where}; the numbers in "
        f"{result_link(name)}, this page by `python -m studies.runs.kept_page FOLDER`.{explained}", "",
        *([found["note"], ""] if "note" in found else []),
        *([f"![{found['title']}](figures/{name}.png)", ""] if has_figure else []),
        "| statement | verdict | evidence |", "|---|---|---|",
    ]  # fmt: skip
    lines += [f"| {_cell(v['statement'])} | **{v['answer']}** | {_cell(v['evidence'])} |" for v in found["verdicts"]]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def keep(folder: Path, results: Path, docs: Path) -> Path:
    """Write a run's numbers into `results`, its page and main figure into `docs`; returns the path of the page."""
    found = collected(folder)
    name = file_name(found["study"])
    outline = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    figure = next((folder / f for f in outline["figures"] if f.endswith(".png")), None)
    if figure is not None:
        (docs / "figures").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(figure, docs / "figures" / f"{name}.png")
    found |= {"figure": figure is not None, "results": kept_rows(folder)}
    (results / f"{name}.json").write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")
    path = docs / f"{name}.md"
    path.write_text(page(found), encoding="utf-8")
    return path


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Keep finished runs of studies: their numbers and a page in docs/")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    for folder in parser.parse_args(words).folders:
        print(keep(folder, results_folder(), pages_folder()))


if __name__ == "__main__":
    run_program(main)

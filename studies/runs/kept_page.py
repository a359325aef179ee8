"""A page of the documentation from a finished run: `python -m studies.runs.kept_page FOLDER`.

Stores the answer, the verdicts, the main results, the settings and the environment in studies/results/NAME.json and the
main figure in docs/measured/figures/NAME.png, and writes docs/measured/NAME.md from them; a table `summary` of the
study stands on the page. Without a folder, the pages of all kept runs are written again.
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
from studies.results import pages_folder, read_result, result_link, results_folder
from studies.runs.boundary import run_program
from studies.runs.report import templates, verdict_counts
from studies.runs.report_only import REBUILT
from studies.runs.setting_limits import CHANGED, setting_text
from studies.runs.tables import Value, read_rows

#: Digits of a stored number.
DIGITS = 6
#: Abbreviations, units and tests of the kept pages, by their names.
TERMS = tomllib.loads((results_folder().parent / "data" / "measured_pages.toml").read_text(encoding="utf-8"))


def file_name(study: str) -> str:
    """Name of the page and results file of a study.

    >>> file_name("trained-energy")
    'trained_energy'
    """
    return study.replace("-", "_")


def collected(folder: Path) -> dict[str, Any]:
    """Question, answer, verdicts, settings, environment and command of a run folder."""
    outline = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    if outline["state"] != "done":
        raise FileError(f"the run in {folder} is not finished ({outline['state']}); resume it first")
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    stored = ("python", "processors", "libraries", "gpu", "code", "seconds", REBUILT)
    words = [f"rdgraph study {config['study']}", *(["--small"] if config["small"] else []), f"--seed {config['seed']}"]
    words += [f"--set '{name}={setting_text(config['settings'][name])}'" for name in config.get(CHANGED, ())]
    return {
        "study": config["study"],
        "title": outline["title"],
        "command": " ".join([*words, f"--device {config['device']}"]),
        "question": outline["question"],
        "answer": outline.get("answer", ""),
        "settings": config["settings"],
        "environment": {key: environment[key] for key in stored if key in environment},
        "verdicts": outline["verdicts"],
        "summary": outline.get("summary"),
    }


def result_rows(folder: Path) -> dict[str, Any]:
    """The main results: the columns once, numbers with six digits."""
    path = folder / "results.csv"
    rows = read_rows(path) if path.is_file() else []
    return {"columns": list(rows[0]) if rows else [], "rows": [[_short(v) for v in row.values()] for row in rows]}


def _short(value: Value) -> Value | None:
    """A number for json: six digits, None for nan, a text for infinity."""
    if isinstance(value, float):
        return None if value != value else float(f"{value:.{DIGITS}g}") if abs(value) != float("inf") else str(value)
    return value


def page(result: dict[str, Any]) -> str:
    """The page as Markdown: question, answer, figure, verdicts, and the provenance at the foot."""
    name = file_name(result["study"])
    environment = result["environment"]
    values = {
        "name": name, "counts": verdict_counts([verdict["answer"] for verdict in result["verdicts"]]),
        "has_figure": result.get("figure", (pages_folder() / "figures" / f"{name}.png").is_file()),
        "terms": TERMS.get(name, ""), "rebuilt": environment.get(REBUILT, {}).get("code"),
        "libraries": environment.get("libraries", {}), "link": result_link(name),
    }  # fmt: skip
    return templates().overlay(autoescape=False).get_template("kept_page.md").render(result, **values) + "\n"


def keep(folder: Path, results: Path, docs: Path) -> Path:
    """Write a run's numbers into `results`, its page and main figure into `docs`; returns the path of the page."""
    result = collected(folder)
    name = file_name(result["study"])
    outline = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    figure = next((folder / f for f in outline["figures"] if f.endswith(".png")), None)
    if figure is not None:
        (docs / "figures").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(figure, docs / "figures" / f"{name}.png")
    result |= {"figure": figure is not None, "results": result_rows(folder)}
    (results / f"{name}.json").write_text(json.dumps(result, ensure_ascii=False) + "\n", encoding="utf-8")
    path = docs / f"{name}.md"
    path.write_text(page(result), encoding="utf-8")
    return path


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Store the numbers of finished runs and write their pages in docs/")
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER", help="none: write all kept pages again")
    folders = parser.parse_args(words).folders
    for folder in folders:
        print(keep(folder, results_folder(), pages_folder()))
    for name in [] if folders else TERMS:
        path = pages_folder() / f"{name}.md"
        path.write_text(page(read_result(name)), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    run_program(main)

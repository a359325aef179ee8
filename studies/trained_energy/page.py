"""docs/trained_energy.md from a finished run of the study: `python -m studies.trained_energy.page FOLDER`.

Keeps the verdicts, the settings and the environment in docs/trained_energy.json and the figure beside them.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

from rdgraph.errors import FileError

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = DOCS / "trained_energy.json"
FIGURE = "figures/trained_energy.png"


def collected(folder: Path) -> dict[str, Any]:
    """What a run folder says: question, verdicts, settings, environment, and the command that repeats it."""
    outline = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    if outline["state"] != "done":
        raise FileError(f"expected a finished run in {folder}, got one that is {outline['state']}; resume it first")
    config = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8"))
    environment = json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    known = {key: environment[key] for key in ("python", "processors", "libraries", "gpu") if key in environment}
    words = ["rdgraph study trained-energy", *(["--small"] if config["small"] else []), f"--seed {config['seed']}"]
    return {
        "command": " ".join([*words, f"--device {config['device']}"]),
        "question": outline["question"],
        "settings": config["settings"],
        "environment": known,
        "verdicts": outline["verdicts"],
    }


def page(found: dict[str, Any]) -> str:
    """The page as Markdown."""
    libraries = found["environment"]["libraries"]
    where = ", ".join(f"{name} {libraries[name]}" for name in ("torch", "numpy") if name in libraries)
    lines = [
        "# Energies of trained networks", "",
        f"{found['question']} `{found['command']}` with {where}; the run's verdicts in "
        "[trained_energy.json](trained_energy.json), this page by `python -m studies.trained_energy.page FOLDER`. What "
        "is measured, and how a verdict is reached: [the laboratory](laboratory.md#trained-networks).", "",
        *([found["note"], ""] if "note" in found else []),
        f"![Energy over the layers of trained networks]({FIGURE})", "",
        "| the paper's statement | verdict | evidence |", "|---|---|---|",
    ]  # fmt: skip
    lines += [f"| {v['statement']} | **{v['answer']}** | {v['evidence']} |" for v in found["verdicts"]]
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    found = collected(folder)
    SOURCE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (DOCS / "trained_energy.md").write_text(page(found), encoding="utf-8")
    shutil.copyfile(folder / "figures" / "energy.png", DOCS / FIGURE)


if __name__ == "__main__":
    main()

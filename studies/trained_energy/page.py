"""docs/measured/trained_energy.md from a finished run of the study: `python -m studies.trained_energy.page FOLDER`.

Keeps the verdicts, the settings and the environment in studies/results/trained_energy.json.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from studies.results import pages_folder, result_link, results_folder
from studies.runs.boundary import run_program
from studies.runs.kept_page import collected

SOURCE = results_folder() / "trained_energy.json"
FIGURE = "figures/trained_energy.png"


def page(found: dict[str, Any]) -> str:
    """The page as Markdown."""
    libraries = found["environment"]["libraries"]
    where = ", ".join(f"{name} {libraries[name]}" for name in ("torch", "numpy") if name in libraries)
    lines = [
        "# Energies of trained networks", "",
        f"{found['question']} `{found['command']}` with {where}; the run's verdicts in "
        f"{result_link('trained_energy')}, this page by `python -m studies.trained_energy.page FOLDER`. What "
        "is measured, and how a verdict is reached: [the laboratory](../guides/laboratory.md#trained-networks).", "",
        *([found["note"], ""] if "note" in found else []),
        f"![Energy over the layers of trained networks]({FIGURE})", "",
        "| the paper's statement | verdict | evidence |", "|---|---|---|",
    ]  # fmt: skip
    lines += [f"| {v['statement']} | **{v['answer']}** | {v['evidence']} |" for v in found["verdicts"]]
    return "\n".join(lines) + "\n"


def main() -> None:
    folder = Path(sys.argv[1])
    found, docs = collected(folder), pages_folder()
    SOURCE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (docs / "trained_energy.md").write_text(page(found), encoding="utf-8")
    shutil.copyfile(folder / "figures" / "energy.png", docs / FIGURE)


if __name__ == "__main__":
    run_program(main)

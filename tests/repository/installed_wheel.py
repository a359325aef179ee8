"""The wheel as a user gets it: `python -m tests.repository.installed_wheel dist/rdgraph-*.whl build/wheel/bin/python`.

Compares the files of the wheel with those that `shipped` names, then runs commands with the python of an environment
that has the wheel, in a folder outside of the checkout. Needs no library itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: What is run, and the files that it must leave.
COMMANDS = (
    (("verify", "BS"), ()),
    (("study",), ()),
    (("explore", "--out", "explorer.html"), ("explorer.html",)),
    (("study", "response", "--small", "--out", "response"), ("response/report.html",)),
    (("train", "--dataset", "digits", "--splits", "0", "--epochs", "3", "--out", "digits"), ("digits/report.html",)),
)


def shipped() -> set[str]:
    """Paths of the files that the wheel is to have: the four packages without what pyproject.toml leaves out."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    packages, excluded = wheel["wheel"]["packages"], [path.strip("/") for path in wheel["wheel"]["exclude"]]
    paths = (path.relative_to(ROOT) for name in packages for path in (ROOT / name).rglob("*") if path.is_file())
    kept = {path.as_posix() for path in paths if "__pycache__" not in path.parts}
    return {path for path in kept if not any(path == one or path.startswith(f"{one}/") for one in excluded)}


def content_faults(names: Iterable[str]) -> list[str]:
    """What a wheel has too much and too little, its own records aside."""
    found = {name for name in names if ".dist-info/" not in name}
    return [f"the wheel has {name}" for name in sorted(found - shipped())] + [
        f"the wheel lacks {name}" for name in sorted(shipped() - found)
    ]


def tally(python: str, folder: Path, path: Path | None = None) -> Any:
    """The tally of `rdgraph ledger` in a folder; of the packages in `path` instead of the installed ones."""
    done = _run(python, ["ledger", "--json"], folder, path)
    return json.loads(done.stdout)["tally"]


def _run(python: str, words: list[str], folder: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    line = [python, "-m", "studies.cli.app", *words]
    environment = others if path is None else {**others, "PYTHONPATH": str(path)}
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"rdgraph {' '.join(words)} failed in {folder}:\n{done.stdout}{done.stderr}")
    return done


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.repository.installed_wheel", description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("python", type=Path, help="of the environment that has the wheel")
    given = parser.parse_args(arguments)
    with zipfile.ZipFile(given.wheel) as wheel:
        if faults := content_faults(wheel.namelist()):
            raise SystemExit("\n".join(faults))
    python = str(given.python.absolute())
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        where = "import studies; print(studies.__file__)"
        origin = subprocess.run([python, "-c", where], cwd=folder, capture_output=True, text=True, check=True).stdout
        if Path(origin.strip()).parents[1] == ROOT:
            raise SystemExit(f"expected the installed packages, got those of the checkout: {origin}")
        for words, files in COMMANDS:
            _run(python, list(words), folder)
            if missing := [name for name in files if not (folder / name).is_file()]:
                raise SystemExit(f"rdgraph {' '.join(words)} left no {', '.join(missing)}")
            print(f"rdgraph {' '.join(words)}: done")
        installed, here = tally(python, folder), tally(python, folder, ROOT)
        if installed != here:
            raise SystemExit(f"the ledger's tally differs: {installed} installed, {here} in the checkout")
        print(f"rdgraph ledger: {installed}, as in the checkout")


if __name__ == "__main__":
    main()

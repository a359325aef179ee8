"""A picture of the page: `python -m docs.building.explorer_picture FILE.png` draws it with a headless Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from rdgraph.errors import MissingDependency
from rdgraph.files import replacing
from studies.explorer.page_text import page_text
from studies.runs.boundary import reported

#: The view of the picture: a finished pattern of spots.
VIEW = "#e=Schnakenberg&t=40"
WIDTH, HEIGHT = 1280, 1392
SECONDS = 300


def write_picture(path: Path, view: str = VIEW, width: int = WIDTH, height: int = HEIGHT) -> None:
    """The page at a view, as png.

    Raises:
        MissingDependency: there is no Chromium, or it drew nothing.
    """
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        raise MissingDependency("drawing the picture needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, replacing(path) as draft:
        page = Path(folder) / "page.html"
        page.write_text(page_text(), encoding="utf-8")
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        flags = ["--headless", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=8000", *sandbox]
        done = subprocess.run(
            [chromium, *flags, f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
             f"--screenshot={draft}", page.as_uri() + view],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        if done.returncode or not draft.stat().st_size:
            raise MissingDependency(f"expected a picture from {chromium}, got {done.stderr[-200:]}; try another one")


def main() -> None:
    """The picture in the file that is named on the command line."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m docs.building.explorer_picture FILE.png")
    with reported(Console(stderr=True)):
        write_picture(Path(sys.argv[1]))
    print(f"wrote {sys.argv[1]}")


if __name__ == "__main__":
    main()

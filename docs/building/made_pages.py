"""Adds HTML pages written by commands to the site: the ledger with filters, and the explorer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from docs.building.reference_pages import write_if_new

ROOT = Path(__file__).resolve().parents[2]
EXPLORER = """# Try the explorer

Pick an equation, move its coefficients, and watch its verdict, filter response, dispersion, energy and states.
`rdgraph explore EQUATION` writes this page for your equation; it needs no server and no network. {link}

```{{raw}} html
<iframe class="made-page" src="{address}" title="The explorer"></iframe>
```
"""
LEDGER = """# The ledger, row by row

Every number and claim of the GREAD paper, with its status. `rdgraph ledger --page FILE` writes this page;
[the ledger](../measured/ledger.md) explains it. {link}

```{{raw}} html
<iframe class="made-page" src="{address}" title="The ledger"></iframe>
```
"""
LINK = '<a href="{address}">Open it full screen.</a>'


def commands() -> set[str]:
    """The names of all commands."""
    from typer.main import get_command

    from studies.cli.app import app

    return set(get_command(app).commands)


#: The pages by name: the text around each, and the command that writes it.
MADE_PAGES = (("ledger_rows", LEDGER, ("ledger", "--page")), ("explore", EXPLORER, ("explore", "--out")))


def rdgraph(*words: str) -> None:
    """Run a command of the package."""
    done = subprocess.run(
        [sys.executable, "-m", "studies.cli.app", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"expected rdgraph {' '.join(words)} to succeed, got\n{done.stdout}{done.stderr}")


def write_made_pages(extra: Path, generated: Path) -> None:
    """Write the pages into `extra`, which is copied into the site as it is, and a page around each into `generated`.

    The explorer is left out, with every link to it, where this version has no such command.
    """
    extra.mkdir(parents=True, exist_ok=True)
    made = MADE_PAGES if "explore" in commands() else MADE_PAGES[:1]
    for name, page, words in made:
        rdgraph(*words, str(extra / f"{name}_page.html"))
        address = f"../{name}_page.html"
        write_if_new(generated / f"{name}.md", page.format(address=address, link=LINK.format(address=address)))

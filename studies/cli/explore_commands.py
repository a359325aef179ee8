"""`rdgraph explore`: one page on which an equation is turned, watched and judged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rdgraph.status_line import StatusLine
from studies.cli.options import GraphName
from studies.runs.boundary import say

console = Console()


def explore_command(
    equation: Annotated[
        str | None, typer.Argument(help="What it opens with: an equation or a name of the catalogue.")
    ] = None,
    graph: GraphName = "karate",
    out: Annotated[Path, typer.Option("--out", help="The page.")] = Path("runs/explorer.html"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Answer to the page: equations that are typed are read and judged in full.")
    ] = False,
    port: Annotated[int, typer.Option("--port", help="Of the server; 0 takes a free one.")] = 0,
) -> None:
    """Write a page that needs no server and no network: responses, energies, patterns, the verdict, by sliders."""
    with StatusLine("computing the page", shown=True):
        from rdgraph.files import write_text
        from studies.explorer.page_text import page_text
        from studies.explorer.server import make_server

        if not serve:
            write_text(out, page_text(equation, graph))
        else:
            made = make_server(equation, graph, port)
    if not serve:
        say(console, f"wrote {out}")
        return
    with made as server, suppress(KeyboardInterrupt):
        say(console, f"http://{server.server_address[0]!s}:{server.server_address[1]}/ (end with Ctrl-C)")
        server.serve_forever()

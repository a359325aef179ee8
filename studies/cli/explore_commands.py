"""`rdgraph explore`: an interactive page for an equation."""

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
    equation: Annotated[str | None, typer.Argument(metavar="EQUATION", help="Equation or name to open with.")] = None,
    graph: GraphName = "karate",
    out: Annotated[Path, typer.Option("--out", help="File to write.")] = Path("runs/explorer.html"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the page, so that equations typed into it get the full analysis.")
    ] = False,
    port: Annotated[int, typer.Option("--port", help="Port of the server; 0 picks a free one.")] = 0,
) -> None:
    """Write an interactive page about an equation.

    The page shows responses, energies, patterns and the verdict, with sliders; it needs no server and no network.

    Example: rdgraph explore BS --out bs.html
    """
    with StatusLine("computing the page", shown=True):
        from rdgraph.files import write_text
        from studies.explorer.page_text import page_text
        from studies.explorer.server import make_server

        if not serve:
            write_text(out, page_text(equation, graph))
        else:
            server_context = make_server(equation, graph, port)
    if not serve:
        say(console, f"wrote {out}")
        return
    with server_context as server, suppress(KeyboardInterrupt):
        say(console, f"http://{server.server_address[0]!s}:{server.server_address[1]}/ (end with Ctrl-C)")
        server.serve_forever()

"""The measured parts of docs/distil.md from their files: `python -m studies.benchmarks.distil_page`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gread.formulas.distilled_network import MAX_SIZE, TOLERANCE
from rdgraph.files import write_text
from studies.benchmarks.cell_file import missing_cells, not_measured
from studies.benchmarks.compared import SETS
from studies.benchmarks.distilled import FUNCTION, KEY
from studies.benchmarks.distilled import page as distilled_table
from studies.runs.boundary import run_program

DOCS = Path(__file__).resolve().parents[2] / "docs"


def recovery_part(found: Mapping[str, Any]) -> str:
    """How often each reaction was recovered.

    >>> rows = {"Fisher": {"recovered": 9, "draws": 10, "worst_error": 0.021}}
    >>> head = {"nodes": 30, "times": 41, "noise": 0.01, "command": "...", "environment": {"python": "3.12"}}
    >>> print(recovery_part({**head, "summary": rows, "rows": []}).splitlines()[-1])
    | Fisher | 9 of 10 | 2.1 % |
    """
    words = ", ".join(f"{name} {value}" for name, value in found["environment"].items())
    inside = [flag for row in found["rows"] for flag in (row.get("inside") or ())]
    share = ""
    if inside:
        share = (
            f" Where the letters were those of the truth, {sum(inside)} of {len(inside)} intervals at 95 % held its "
            "coefficients."
        )
    lines = [
        f"States of five reactions on random graphs of {found['nodes']} nodes (small worlds, hubs, coins), at "
        f"{found['times']} times with noise of {100 * found['noise']:g} % of their root mean square, the unknown start "
        "included; functions of functions were allowed. A draw is recovered where the formula is the true one and "
        f"every coefficient, alpha too, is within 5 %.{share} `{found['command']}` on {words}, numbers in "
        "[distil_recovery.json](distil_recovery.json).",
        "",
        "| reaction | recovered | largest error of a coefficient, where recovered |",
        "|---|---|---|",
    ]
    for name, row in found["summary"].items():
        worst = "" if row["worst_error"] is None else f"{100 * row['worst_error']:.1f} %"
        lines.append(f"| {name} | {row['recovered']} of {row['draws']} | {worst} |")
    return "\n".join(lines)


def distilled_part(found: Mapping[str, Any]) -> str:
    """What formulas cost on the data sets."""
    words = ", ".join(f"{name} {value}" for name, value in found["environment"].items())
    order = {name: k for k, name in enumerate(SETS)}
    rows = sorted(found["rows"], key=lambda row: order.get(row["dataset"], len(order)))
    return (
        "### What does it cost?\n\n`-alpha*L@H + phi(H)` with the settings published for GREAD-BS, all splits, one "
        f"seed; a formula of size {MAX_SIZE} or less that misses phi by at most {100 * TOLERANCE:g} %, where every "
        f"split has constants of its own. `{found['command']}` on {words}, numbers in "
        f"[distilled.json](distilled.json).\n\n{distilled_table(rows)}"
        + "\n".join(not_measured(found, missing_cells(found, KEY, (FUNCTION,), SETS)))
    )


def with_part(text: str, name: str, part: str) -> str:
    """The page with what stands between two marks replaced.

    >>> with_part("a\\n<!-- x -->\\nold\\n<!-- end of x -->\\nb", "x", "new")
    'a\\n<!-- x -->\\n\\nnew\\n\\n<!-- end of x -->\\nb'
    """
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- end of {name} -->", re.DOTALL)
    return pattern.sub(lambda _: f"<!-- {name} -->\n\n{part}\n\n<!-- end of {name} -->", text)


def main() -> None:
    path = DOCS / "distil.md"
    text = path.read_text(encoding="utf-8")
    for name, make in (("recovery", recovery_part), ("distilled", distilled_part)):
        file = DOCS / ("distil_recovery.json" if name == "recovery" else "distilled.json")
        if file.exists():
            text = with_part(text, name, make(json.loads(file.read_text(encoding="utf-8"))))
    write_text(path, text)


if __name__ == "__main__":
    run_program(main)

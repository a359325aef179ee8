"""docs/accuracy.md from the measured numbers: `python -m studies.benchmarks.accuracy_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from studies.benchmarks.accuracy import difference, verdict
from studies.runs.boundary import run_program

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCE = DOCS / "accuracy.json"
SETS = ("texas", "wisconsin", "cornell_old", "film", "squirrel", "chameleon", "cora", "citeseer", "pubmed")
#: A cell in which this share of the trainings diverged is marked.
MANY = 0.1

HEAD = """# Accuracy

Test accuracy in percent at the first epoch with the best validation accuracy: 200 epochs, full batch, the ten public
splits of every set. ± is the population standard deviation over the splits. Numbers in [accuracy.json](accuracy.json),
this page by `python -m studies.benchmarks.accuracy_page`.
"""
AUTHORS = """## The authors' settings

BS with the settings that were released with the GREAD authors' code, {seeds} seeds on every split. Beside it what their
code reached with one seed on the same kind of card, and what the paper prints. *agrees*: the difference is within two
of its standard errors, in brackets: the splits are the independent units, and the error of a mean over k of them is
s/√(k - 1), s their population standard deviation, as in `rdgraph train`.
"""
PAPER = """## The paper's settings, all reactions

The best settings that the paper prints, {seeds_words} per split; what the paper leaves open (self-loops, hidden layers,
the ReLU) is taken from the released settings of the same set. Every cell: ours, the paper's in brackets; **bold** where
the difference exceeds two standard errors. † marks cells in which trainings diverged (a reaction without a
bound meets features that training makes large); such a training is frozen, and counts with the best epoch it had.
"""


def page(found: dict[str, Any]) -> str:
    """The page as Markdown."""
    lines = [HEAD]
    if "authors" in found:
        lines += [
            AUTHORS.format(seeds=found["authors"]["seeds"]),
            *_origin(found["authors"]),
            *_authors(found["authors"]),
        ]
    if "paper" in found:
        lines += [PAPER.format(seeds_words=_seeds(found["paper"]["seeds"])), *_origin(found["paper"])]
        lines += [*_cells(found["paper"]), "", *_summary(found["paper"])]
    return "\n".join(lines) + "\n"


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"{count} seeds"


def _origin(part: dict[str, Any]) -> list[str]:
    where = ", ".join(f"{k} {v}" for k, v in part["environment"].items())
    return [f"`{part['command']}` on {where}.", ""]


def _authors(part: dict[str, Any]) -> list[str]:
    lines = ["| set | ours | authors' code | difference | | the paper |", "|---|---:|---:|---:|---|---:|"]
    rows = {row["dataset"]: row for row in part["rows"]}
    for row in (rows[name] for name in SETS if name in rows):
        theirs, gap, word = "", "", ""
        if row["authors"] is not None:
            theirs = f"{row['authors']:.2f} ± {row['authors_std']:.2f}"
            change, error = difference(row["mean"], row["std"], row["splits"], row["authors"], row["authors_std"])
            gap, word = f"{change:+z.2f} ({error:.2f})", verdict(change, error)
        lines.append(
            f"| {row['dataset']} | {row['mean']:.2f} ± {row['std']:.2f} | {theirs} | {gap} | {word} | {_paper(row)} |"
        )
    return [*lines, ""]


def _paper(row: dict[str, Any]) -> str:
    if row["paper"] is None:
        return ""
    spread = f" ± {row['paper_std']:.2f}" if row["paper_std"] is not None else ""
    return f"{row['paper']:.2f}{spread}"


def _cells(part: dict[str, Any]) -> list[str]:
    """Reactions as rows, data sets as columns."""
    cells = {(row["reaction"], row["dataset"]): row for row in part["rows"]}
    names = [name for name in SETS if any(dataset == name for _, dataset in cells)]
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for reaction in dict.fromkeys(reaction for reaction, _ in cells):
        texts = [_cell(cells[reaction, name]) if (reaction, name) in cells else "" for name in names]
        lines.append(f"| {reaction} | {' | '.join(texts)} |")
    return lines


def _cell(row: dict[str, Any]) -> str:
    text = f"{row['mean']:.2f}"
    if row["paper"] is not None:
        gap, error = difference(row["mean"], row["std"], row["splits"], row["paper"], row["paper_std"])
        text = text if verdict(gap, error) == "agrees" else f"**{text}**"
        text += f" ({row['paper']:.2f})"
    return text + ("†" if _diverged(row) else "")


def _diverged(row: dict[str, Any]) -> bool:
    return bool(row["diverged"] > MANY * row["splits"] * len(row["by_seed"]))


def _summary(part: dict[str, Any]) -> list[str]:
    """How many cells agree with the paper, in words."""
    words = {"agrees": 0, "above": 0, "below": 0}
    lost = 0
    for row in part["rows"]:
        if row["paper"] is None:
            continue
        words[verdict(*difference(row["mean"], row["std"], row["splits"], row["paper"], row["paper_std"]))] += 1
        lost += _diverged(row)
    return [
        f"Of {sum(words.values())} cells, {words['agrees']} agree with the paper, {words['above']} lie above and "
        f"{words['below']} below it; in {lost} trainings diverged."
    ]


def main() -> None:
    (DOCS / "accuracy.md").write_text(page(json.loads(SOURCE.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    run_program(main)

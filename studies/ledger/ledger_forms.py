"""The ledger as csv, json and one page of html, and the choice of some of its rows."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader

from gread.comparison import ABOVE, NOISE, REPRODUCED
from rdgraph.errors import UnknownName
from studies.ledger.entry import (
    CONTRADICTED,
    NOT_MEASURED,
    NOT_REPRODUCED,
    STATUSES,
    UNDECIDED,
    UNDERSPECIFIED,
    LedgerEntry,
    status_tally,
)
from studies.runs import report

TEMPLATES = Path(__file__).parent / "templates"
#: The classes of the page's colours.
COLOURS = {
    REPRODUCED: "holds", NOISE: "holds", ABOVE: "if", NOT_REPRODUCED: "fails", UNDERSPECIFIED: "if",
    CONTRADICTED: "fails", UNDECIDED: "undecided", NOT_MEASURED: "unmeasured",
}  # fmt: skip

#: The headline's words for every status but agreement, in its order.
HEADLINE = {
    NOT_REPRODUCED: "are not reproduced", UNDERSPECIFIED: "are underspecified", UNDECIDED: "are undecided",
    CONTRADICTED: "are contradicted by the paper itself", ABOVE: "come out higher", NOT_MEASURED: "are not measured",
}  # fmt: skip


def chosen_entries(entries: Sequence[LedgerEntry], status: str | None, table: str | None) -> list[LedgerEntry]:
    """Those of a status, whose beginning is enough, and of a table ("8", "T8", "Table 8", "claims").

    Raises:
        UnknownName: for an unknown status or table.
    """
    stored = list(entries)
    if status is not None:
        words = [word for word in STATUSES if word == status.casefold()]
        words = words or [word for word in STATUSES if word.startswith(status.casefold())]
        if len(words) != 1:
            raise UnknownName("status", status, STATUSES)
        stored = [entry for entry in stored if entry.status == words[0]]
    if table is not None:
        known = {entry.printed.table for entry in entries}
        asked = table.casefold().removeprefix("table").strip().removeprefix("t")
        names = [name for name in known if name.casefold() in (table.casefold(), f"table {asked}")]
        if not names:
            raise UnknownName("table", table, known)
        stored = [entry for entry in stored if entry.printed.table == names[0]]
    return stored


def as_json(entries: Sequence[LedgerEntry]) -> str:
    """One object: the tally, what each status says, the rows."""
    collected = {"tally": status_tally(entries), "statuses": STATUSES, "rows": [entry.row() for entry in entries]}
    return json.dumps(collected, indent=1, ensure_ascii=False) + "\n"


def as_csv(entries: Sequence[LedgerEntry]) -> str:
    """The same rows; what other people measured is a json list in its column, and an empty field is no number."""
    rows = [entry.row() for entry in entries]
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            others = json.dumps(row["others"], ensure_ascii=False) if row["others"] else ""
            writer.writerow({**row, "others": others})
    return out.getvalue()


def as_page(entries: Sequence[LedgerEntry]) -> str:
    """One page that needs nothing else: the tally, then rows to filter, sort and open; the paper's methods first."""
    ordered = sorted(entries, key=lambda entry: not entry.printed.subject.startswith("GREAD"))
    environment = report.templates().overlay(loader=FileSystemLoader([TEMPLATES, report.TEMPLATES]))
    tables = {name: status_tally(e for e in entries if e.printed.table == name) for name in table_names(entries)}
    return environment.get_template("ledger.html").render(
        rows=[{**entry.row(), "colour": COLOURS[entry.status], "place": place(entry)} for entry in ordered],
        tally=status_tally(entries), tables=tables, statuses=STATUSES, colours=COLOURS, answer=answer(entries),
    )  # fmt: skip


def as_markdown(entries: Sequence[LedgerEntry]) -> str:
    """The page of the documentation: the tally by table, how rows are judged, and what the paper contradicts."""
    tally = status_tally(entries)
    tables = [f"| table | {' | '.join(tally)} |", f"|---|{'---:|' * len(tally)}"]
    for name in table_names(entries):
        collected = status_tally(e for e in entries if e.printed.table == name)
        tables.append(f"| {name} | {' | '.join(str(collected.get(status, '')) for status in tally)} |")
    statuses = ["| status | meaning |", "|---|---|", *(f"| {status} | {text} |" for status, text in STATUSES.items())]
    lines = ["| cell | printed | but | ours | status |", "|---|---:|---|---:|---|"]
    for entry in entries:
        if entry.contradiction:
            row = entry.row()
            ours = "" if row["ours"] is None else shown_number(row["ours"], None)
            lines.append(f"| {row['cell']} | {shown_number(row['published'], row['published_std'])} | "
                         f"{row['contradiction']} | {ours} | {entry.status} |")  # fmt: skip
    head = (TEMPLATES / "ledger_page.md").read_text(encoding="utf-8")
    return head.format(
        answer=answer(entries), tally="\n".join(tables), statuses="\n".join(statuses), contradictions="\n".join(lines)
    )


def table_names(entries: Sequence[LedgerEntry]) -> list[str]:
    """The tables of some entries in their order, and last the claims."""
    return sorted({e.printed.table for e in entries}, key=lambda name: (not name[-1].isdigit(), len(name), name))


def place(entry: LedgerEntry) -> str:
    """Its place in the paper."""
    printed = entry.printed
    return printed.source if printed.statement else printed.table


def answer(entries: Sequence[LedgerEntry]) -> str:
    """The ledger in a sentence, with every entry counted once."""
    tally = status_tally(entries)
    agreed = tally.get(REPRODUCED, 0) + tally.get(NOISE, 0)
    counts = {"agree": agreed} | {words: tally.get(status, 0) for status, words in HEADLINE.items()}
    listed = [f"{count} {words}" for words, count in counts.items() if count]
    return f"Of the paper's {len(entries)} numbers and claims, {', '.join(listed)}."


def known_of(entry: LedgerEntry) -> list[tuple[str, str]]:
    """Everything about a cell, as headings and texts."""
    row = entry.row()
    lines: list[tuple[str, str]] = [("cell", row["cell"]), ("printed in", f"{place(entry)}; {row['source']}")]
    if row["statement"]:
        lines.append(("claim", row["statement"]))
    else:
        lines.append(("published", shown_number(row["published"], row["published_std"])))
    lines.append(("status", f"{entry.status}: {STATUSES[entry.status]}"))
    group = entry.own
    if group is not None:
        lines.append(("ours", row["answer"] or shown_number(row["ours"], row["ours_std"])))
        if row["error"] is not None:
            p = "" if row["p"] is None else f", p = {row['p']:.2g}"
            lines.append(("difference", f"{row['difference']:+z.2f}, standard error {row['error']:.2f}{p}"))
        lines.append(("test", row["test"]))
    lines += [(name, row[name]) for name in ("cause", "contradiction", "reading") if row[name]]
    if group is not None:
        each = group.detail.get("each") or group.detail.get("by_seed")
        word = "splits" if group.detail.get("each") else "seeds"
        lines += [(word, ", ".join(f"{value:.2f}" for value in each))] if each else []
        lines += [(f"check, {'passed' if c['passed'] else 'failed'}", f"{c['text']}: {c['result']}")
                  for c in group.detail.get("evidence", ())]  # fmt: skip
        lines += [(f"verdict, {v['answer']}", f"{v['statement']} {v['evidence']}")
                  for v in group.detail.get("verdicts", ())]  # fmt: skip
        lines += [("settings", text)] if (text := settings_text(entry)) else []
        lines += [("command", row["command"]), ("file", f"{row['file']}, sha256 {row['sha256'][:12]}")]
    for one in row["others"]:
        words = f"{shown_number(one['value'], one['std'])} over {one['splits']} splits, {one['status']}"
        details = "; ".join(filter(None, (one["reading"], one["note"], one["command"])))
        lines.append((one["who"], f"{words}; {details}; {one['file']}, sha256 {one['sha256'][:12]}"))
    return lines


def shown_number(value: float | None, std: float | None) -> str:
    """A number with its deviation.

    >>> shown_number(88.5, 1.0), shown_number(2708, None), shown_number(None, None)
    ('88.50 ± 1.00', '2708', 'none')
    """
    if value is None:
        return "none"
    text = f"{value:.0f}" if float(value).is_integer() and std is None else f"{value:.2f}"
    return text if std is None else f"{text} ± {std:.2f}"


def settings_text(entry: LedgerEntry) -> str:
    """The settings of our measurement, if the file or a preset has them."""
    from gread.settings.presets import presets

    group, printed = entry.own, entry.printed
    if group is None or printed.quantity != "accuracy" or not printed.dataset:
        return ""
    collected: Any = group.detail.get("settings")
    if collected:
        return "; ".join(f"{part}: " + ", ".join(f"{k} {v}" for k, v in values.items())
                         for part, values in collected.items())  # fmt: skip
    reaction = printed.subject.removeprefix("GREAD-")
    known = {preset.name for preset in presets()}
    kind = group.detail.get("preset") or group.detail.get("family") or "paper"
    name = f"{kind}/{reaction}/{printed.dataset}"
    return f"rdgraph presets show '{name}'" if name in known else ""

"""Our measurements of the cells of the paper, read from the results files of the package, each with its hash."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gread.comparison import REPRODUCED, difference_error, reach
from gread.settings.model_records import find_model, models
from gread.settings.presets import published_results
from gread.settings.published_tables import published_ablations
from rdgraph.errors import FileError
from rdgraph.files import read_bytes
from studies.cells.cell import published_config
from studies.ledger.entry import CONTRADICTED, NOT_REPRODUCED, UNDECIDED, UNDERSPECIFIED, Measurement
from studies.ledger.printed_numbers import cell_name, claim_measurements, measured_claims, table_of
from studies.paper.ablation import best_options
from studies.paper.depth import BEST, READINGS
from studies.paper.families import BASELINE, FAMILIES, SEARCHED
from studies.paper.forensics import RULES, TRAINED
from studies.results import results_folder

#: What a decided claim says of the paper.
CLAIM_STATUS = {"holds": REPRODUCED, "holds if": UNDERSPECIFIED, "false": NOT_REPRODUCED, "undecided": UNDECIDED}
#: How the reasons of `gread.datasets.published_comparison` name what the paper's own text or table contradicts.
SELF_CONTRADICTING = ("of the paper's formula", ": swapped")


def stored_measurements(folder: Path | None = None) -> list[Measurement]:
    """All measurements of cells of the paper in a folder of results files, each with the hash of its file.

    Earlier files take precedence for the same reading of a cell. The results of this package are complete, so a missing
    file is an error; another folder needs at least one of the files.
    """
    where = results_folder() if folder is None else folder
    result: list[Measurement] = []
    paths = {where / name: read for name, read in READERS.items() if folder is None or (where / name).is_file()}
    if not paths:
        raise FileError(f"{where} has no results file; expected some of {', '.join(READERS)}")
    for path, read in paths.items():
        content = read_bytes(path, "measured numbers")
        digest = hashlib.sha256(content).hexdigest()
        try:
            stored = json.loads(content)
            claims = claim_measurements(path.stem, stored) if path.name in DECIDING else ()
            result += [
                replace(one, file=f"{where.name}/{path.name}", sha256=digest) for one in (*read(stored), *claims)
            ]
        except (ValueError, KeyError, TypeError) as problem:
            raise FileError(f"{path} lacks {problem}; run the program that writes it again") from None
    return result


def _cells() -> dict[tuple[str, str], str]:
    """The cell of every accuracy of the large table, by method and data set."""
    return {(p.method, p.dataset): cell_name(table_of(p.source), p.method, p.dataset) for p in published_results()}


def _rows(stored: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a page that `studies.runs.kept_page` kept."""
    for row in stored["results"]["rows"]:
        yield dict(zip(stored["results"]["columns"], row, strict=True))


def _accuracy(row: Mapping[str, Any], cell: str, command: str, **more: Any) -> Measurement:
    std = row.get("std")
    return Measurement(
        cell, _float(row["mean"]), None if std is None else float(std), int(row.get("splits", 10)), command=command,
        detail=dict(row), **more,
    )  # fmt: skip


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def _classification(stored: Mapping[str, Any]) -> Iterator[Measurement]:
    """classification.json: what the study trained; rows that it took from searched.json are read there."""
    cells = _cells()
    for row in _rows(stored):
        cell, family = cells.get((row["method"], row["dataset"])), row["family"]
        if cell is not None and family != SEARCHED:
            words = {"reading": f"{family}: {FAMILIES[family]}" if family in FAMILIES else family}
            yield _accuracy(row, cell, stored["command"], is_main=family in ("paper", BASELINE), **words)


def _published_settings(result: Mapping[str, Any]) -> Iterator[Measurement]:
    """accuracy.json: BS with the authors' released settings."""
    cells = _cells()
    for kind, part in result.items():
        for row in part["rows"]:
            cell = cells.get((f"GREAD-{row['reaction']}", row["dataset"]))
            if cell is not None:
                reading = f"{kind}: {FAMILIES[kind]}"
                yield _accuracy(row, cell, part["command"], is_main=False, reading=reading)


def _compared(result: Mapping[str, Any]) -> Iterator[Measurement]:
    """compared.json: the other networks."""
    cells = _cells()
    for row in result["rows"]:
        name = find_model(row["model"]).published if row["model"] in models else ""
        cell = cells.get((name, row["dataset"]))
        if cell is not None:
            is_open = int(row["tried"]) > 1
            words = f"settings searched here, {row['tried']} tried: {row['origin']}" if is_open else row["origin"]
            yield replace(
                _accuracy(row, cell, result["command"], reading=words, is_open=is_open), count=len(row["each"])
            )  # fmt: skip


def _searched(result: Mapping[str, Any]) -> Iterator[Measurement]:
    """searched.json: reactions with settings chosen by validation accuracy; further measurements."""
    cells = _cells()
    for row in result["rows"]:
        cell = cells.get((f"GREAD-{row['contestant']}", row["dataset"]))
        if cell is not None and row.get("metric", "accuracy") == "accuracy":
            each = [float(value) for value in row["each"]]
            mean = sum(each) / len(each)
            std = math.sqrt(sum((value - mean) ** 2 for value in each) / len(each))
            yield Measurement(
                cell, mean, std, len(each), "searched: settings chosen on the validation nodes", is_main=False,
                command=str(result.get("command", "")), detail=dict(row),
            )  # fmt: skip


def _forensics(stored: Mapping[str, Any]) -> Iterator[Measurement]:
    """forensics.json: completions of the printed settings; further measurements, without cells of the authors' code."""
    cells = _cells()
    for row in _rows(stored):
        if row["completion"] in (*RULES, *TRAINED):
            cell = cells[f"GREAD-{row['reaction']}", row["dataset"]]
            yield _accuracy(row, cell, stored["command"], is_main=False, reading=row["completion"])


def _ablation(stored: Mapping[str, Any]) -> Iterator[Measurement]:
    """ablation.json; options other than that of the printed settings have no published settings."""
    cells = {
        (p.reaction, p.dataset, p.setting): cell_name(table_of(p.source), f"GREAD-{p.reaction}", p.dataset, p.setting)
        for p in published_ablations()
    }
    for row in _rows(stored):
        cell = cells.get((row["reaction"], row["dataset"], row["option"]))
        if cell is not None:
            printed = best_options(published_config("paper", row["reaction"], row["dataset"]))
            is_open = row["option"] not in printed
            other = ", except for the option, whose settings are not published" if is_open else ""
            yield _accuracy(row, cell, stored["command"], reading=f"the printed settings{other}", is_open=is_open)


def _depth(stored: Mapping[str, Any]) -> Iterator[Measurement]:
    cells = _cells()
    for row in _rows(stored):
        if row["paper"] is None:
            continue
        cell = cell_name("Table 23", row["method"], row["dataset"], row["layers"])
        if row["reading"] == BEST:
            cell = cells[row["method"], row["dataset"]]
        is_open = row["method"] == "GRAND++"
        is_main = row["reading"] != BEST
        reading = f"{row['reading']}: {READINGS[row['reading']]}"
        yield _accuracy(row, cell, stored["command"], reading=reading, is_open=is_open, is_main=is_main)


def _significance(stored: Mapping[str, Any]) -> Iterator[Measurement]:
    """Means over seeds and splits, and Welch's t of all trainings; the splits are the independent units."""
    splits = int(stored["settings"]["splits"])
    for row in _rows(stored):
        reading = "the authors' released settings, ten seeds on every split; GRAND with the same"
        for method, mean, std in (("GRAND", "other", "other_std"), ("GREAD-BS", "own", "own_std")):
            yield Measurement(
                cell_name("Table 24", method, row["dataset"]), _float(row[mean]), _float(row[std]), splits, reading,
                command=stored["command"], detail=row,
            )  # fmt: skip
        yield Measurement(
            cell_name("Table 24", "t", row["dataset"]), _float(row["welch_t"]), None, int(row["runs"]), reading,
            error=t_error(row, splits), chance=reach(1.0, splits), command=stored["command"], detail=row,
            test="Student's interval of the difference of two t values, the splits as units",
        )  # fmt: skip


def t_error(row: Mapping[str, Any], splits: int) -> float:
    """The standard error of the difference of two t statistics, ours and the printed one, each of trainings on splits.

    Welch's t takes all trainings as independent; those on one split are not, and splits share training nodes. Then t
    has the variance r^2 + t^2/(2 f): r is the corrected standard error of the difference (Nadeau and Bengio) over
    Welch's, 1 at least, and f = 2 (splits - 1) are the degrees of both deviations. The two t are taken as independent,
    with the same r, since the paper prints no splits.

    >>> row = dict(own_std=3.0, other_std=3.0, runs=100, corrected_error=1.2, welch_t=10.0, paper_t=8.0)
    >>> round(t_error(row, 10), 2), round(t_error({**row, "corrected_error": 0.1}, 10), 2)
    (4.52, 2.56)
    """
    runs, free = int(row["runs"]), 2.0 * (splits - 1)
    welch = difference_error(_float(row["own_std"]), runs, _float(row["other_std"]), runs)
    ratio = max(1.0, _float(row["corrected_error"]) / welch) if welch else math.nan
    return math.sqrt(2 * ratio**2 + (_float(row["welch_t"]) ** 2 + _float(row["paper_t"]) ** 2) / (2 * free))


def _counted(result: Mapping[str, Any]) -> Iterator[Measurement]:
    """data_table.json, the output of `rdgraph data table --json`."""
    for facts in result["sets"]:
        for row in facts["paper"]:
            contradicts = any(words in row["reason"] for words in SELF_CONTRADICTING)
            word = REPRODUCED if row["agrees"] else CONTRADICTED if contradicts else NOT_REPRODUCED
            yield Measurement(
                cell_name(table_of(row["source"]), row["name"], row["quantity"]), float(row["ours"]), word=word,
                test="counted, compared in the digits printed", command="rdgraph data table --json",
                note=f"the printed figure {row['reason']}" if row["reason"] else "", detail=row,
            )  # fmt: skip


def _degrees(result: Mapping[str, Any]) -> Iterator[Measurement]:
    """degrees.json: means over graphs; equal in the digits printed is the same, and what differs where all our
    graphs are alike is undecided, for want of an error."""
    for row in result["rows"]:
        is_same = abs(row["mean"] - row["printed"]) < 0.005 + 1e-9
        word = REPRODUCED if is_same else UNDECIDED if row["std"] < 1e-9 else ""
        yield Measurement(
            cell_name("Table 9", f"h={row['homophily']:g}", row["quantity"]), row["mean"], row["std"], row["graphs"],
            "graphs grown here by the same rule", word=word, command=result["command"], detail=row,
            test="compared in the digits printed" if word else "Welch, Student's interval of the difference",
        )  # fmt: skip


def _claims(result: list[dict[str, Any]]) -> Iterator[Measurement]:
    """claims.json, the output of `rdgraph verify all --json`."""
    for claim in result:
        answer = f"{claim['status']} {claim['condition']}".strip() if claim["condition"] else claim["status"]
        word = CLAIM_STATUS[claim["status"]] if claim["as_expected"] else UNDECIDED
        yield Measurement(
            claim["id"], math.nan, word=word, answer=answer, note=claim["witness"],
            test="decided by the machinery, cross-checked on random graphs", detail=claim,
            command=f"rdgraph verify {claim['id']} --evidence",
        )  # fmt: skip


#: Pages of studies with verdicts about sentences of the paper.
DECIDING = frozenset(f"{claim.study}.json" for claim in measured_claims().values())
#: Name of a results file -> what reads it. A file that another one repeats stands after it.
READERS: dict[str, Callable[[Any], Iterator[Measurement]]] = {
    "classification.json": _classification,
    "accuracy.json": _published_settings,
    "compared.json": _compared,
    "searched.json": _searched,
    "forensics.json": _forensics,
    "ablation.json": _ablation,
    "depth.json": _depth,
    "significance.json": _significance,
    "data_table.json": _counted,
    "degrees.json": _degrees,
    "claims.json": _claims,
}
READERS |= dict.fromkeys(sorted(DECIDING - set(READERS)), lambda _: iter(()))  # the paper has no numbers of these pages

"""What the study of Turing patterns answers, from its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from studies.runs.study_run import StudyRun
from studies.runs.tables import Row
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED
from studies.stability.plane import PlaneCase
from studies.stability.plane_rows import disagreements

#: Largest relative difference of a measured and a predicted growth rate.
CLOSE = 0.01
#: A pattern differs between nodes by more than this share of the field, and moves by less than that.
PATTERNED, STILL = 0.05, 0.01


def judge_plane(run: StudyRun, case: PlaneCase, rows: Sequence[Row]) -> None:
    """Do the predicted unstable modes decide what a simulation does, away from the border?"""
    away = [row for row in rows if row["away"]]
    wrong = disagreements(list(rows))
    share = 1 - len(wrong) / len(away) if away else float("nan")
    counts = {
        name: sum(row["predicted"] == name for row in away) for name in dict.fromkeys(r["predicted"] for r in rows)
    }
    everywhere = sum(int(row["agrees"]) for row in rows) / len(rows)
    answer = UNDECIDED if not away else FAILS if wrong else HOLDS
    run.verdict(
        f"{case.label} on {case.graph_text}: the eigenvalues of P(λ) on the graph predict which deviations grow.",
        answer,
        f"{len(away)} of {len(rows)} members are away from the border, and {share:.2%} of them were simulated as "
        f"predicted, {len(wrong)} were not; with those near the border {everywhere:.2%}. Away from it: "
        + ", ".join(f"{count} {name}" for name, count in counts.items())
        + f". Near the border: a predicted deviation changes by less than exp({run.settings['border']:g}) while it is "
        "watched.",
    )


def judge_growth(run: StudyRun, case: PlaneCase, rows: Sequence[Row]) -> None:
    """Are growth rates of single modes as predicted?"""
    differences = np.array([float(row["difference"]) for row in rows])
    answer = UNDECIDED if not len(rows) else HOLDS if (differences < CLOSE).all() else FAILS
    largest = f"{differences.max():.2e}" if len(rows) else "nan"
    run.verdict(
        f"{case.label} on {case.graph_text}: single modes grow at the predicted rates, within {CLOSE:.0%}.",
        answer,
        f"{len(rows)} modes of Turing-unstable members, linear fit of the log of the projected deviation: largest "
        f"relative difference {largest}, of {sum(differences < CLOSE)} within {CLOSE:.0%}.",
    )


def judge_pattern(run: StudyRun, case: PlaneCase, rows: Sequence[Row], growth: float, at_zero: float) -> None:
    """Does the reference member end in a pattern that stays?"""
    first = case.system.fields[0]
    values = np.array([float(row[first]) for row in rows])
    moved = max(float(row[f"{first}_moved"]) for row in rows)
    spread, size = float(values.max() - values.min()), float(np.abs(values).mean())
    patterned, still = spread > PATTERNED * size, moved < STILL * size
    expected = growth > 0 > at_zero
    answer = UNDECIDED if not (expected and still) else HOLDS if patterned else FAILS
    place = ", ".join(f"{name} = {value:g}" for name, value in case.reference.items())
    run.verdict(
        f"{case.label} on {case.graph_text}: a Turing-unstable constant state gives way to a pattern that stays.",
        answer,
        f"At {place} the fastest mode grows at the rate {growth:.4g} and constant deviations at {at_zero:.4g}; at the "
        f"end {first} lies between {values.min():.4g} and {values.max():.4g}, and moved by at most {moved:.2g} in the "
        "last tenth of the time.",
    )


def judge_threshold(run: StudyRun, entry: dict[str, object], rows: Sequence[Row]) -> None:
    """Is a published threshold the one that follows from the equations?"""
    printed, digits = float(str(entry["printed"])), int(str(entry["digits"]))
    exact = float(rows[0]["threshold"])
    networks = np.array([float(row["threshold"]) for row in rows[1:]])
    ours = f"{rows[0]['formula']} = {exact:.6f}"
    drawn = f"On {len(networks)} networks drawn as described ({rows[-1]['network']}), whose eigenvalues lie apart: "
    run.verdict(
        f"{entry['name']}: the threshold is {entry['threshold']} = {printed:g}, as printed.",
        HOLDS if round(exact, digits) == printed else FAILS,
        f"Over all λ > 0 it is {ours}, which is {abs(exact / printed - 1):.2%} from the printed number. "
        + (f"{drawn}{networks.min():.6f} to {networks.max():.6f}. " if len(networks) else "")
        + f"Source: {entry['source']}.",
    )

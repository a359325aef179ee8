"""Does the solver that the paper used damp what the flow damps?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.runs.study_run import StudyRun


def judge(run: StudyRun, found: Sequence[Mapping[str, Any]]) -> None:
    euler = [row for row in found if row["solver"] == "euler"]
    rk4 = [row for row in found if row["solver"] == "rk4"]
    for used, name in ((euler, "Euler's method"), (rk4, "RK4")):
        wrong = [row for row in used if row[f"{used[0]['solver']}_width"] > 0]
        places = sorted({f"{row['system']} on {row['dataset']}" for row in wrong})
        betas = ", ".join(f"{b:g}" for b in run.settings["betas"])
        run.verdict(
            f"Where the paper uses {name}, it damps every frequency that the flow damps.",
            "fails" if wrong else "holds",
            f"Of {len(used)} cases, with β = {betas}, {len(wrong)} amplify one"
            + (f": {', '.join(places)}." if places else "."),
        )

"""What the atlas answers: where linear theory tells the end of a run, and where it only tells that it is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from studies.runs.study_run import StudyRun
from studies.runs.tables import Row
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED
from studies.stability.plane import PlaneCase

#: What the linearisation says of the end of a run, by the predicted regime.
STATEMENTS = {
    "stable": "where all modes decay, runs return to the constant state",
    "Turing": "where only modes with λ > 0 grow, runs end in states that differ between nodes",
    "Hopf": "where constant deviations grow in oscillations, and no pattern grows without, runs do not come to rest in "
    "a constant state",
    "Turing-Hopf": "where constant deviations oscillate and grow, and patterns grow too, runs do not come to rest in a "
    "constant state",
    "wave": "where only oscillating modes with λ > 0 grow, runs end in states that differ between nodes",
    "unstable at 0": "where constant deviations grow without oscillation, runs leave the constant state",
}


def judge(run: StudyRun, case: PlaneCase, rows: Sequence[Row]) -> None:
    """A verdict for every predicted regime that occurs, and one on oscillation death."""
    for regime, statement in STATEMENTS.items():
        own = [row for row in rows if row["predicted"] == regime]
        if not own:
            continue
        away = [row for row in own if row["away"]]
        wrong = [row for row in away if not row["agrees"]]
        seen = Counter(str(row["measured"]) for row in away)
        run.verdict(
            f"{case.label} on {case.graph_text}, {regime}: {statement}.",
            UNDECIDED if not away else FAILS if wrong else HOLDS,
            f"{len(away)} of {len(own)} members are away from the border (growth over the run above "
            f"exp({run.settings['border']:g}) or below its inverse): "
            + ", ".join(f"{count} {name}" for name, count in seen.most_common())
            + f"; {len(wrong)} otherwise.",
        )
    death = [row for row in rows if row["measured"] == "oscillation death"]
    regimes = Counter(str(row["predicted"]) for row in death)
    run.verdict(
        f"{case.label} on {case.graph_text}: somewhere the graph stops an oscillation (oscillation death).",
        HOLDS if death else FAILS,
        f"{len(death)} of {len(rows)} members oscillate where all nodes agree, and rest in a pattern on the graph"
        + (f": predicted {', '.join(f'{count} {name}' for name, count in regimes.most_common())}." if death else "."),
    )

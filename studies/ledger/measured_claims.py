"""What the paper says about its experiments, decided by the verdicts of studies that were kept."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from studies.cells.agreement import REPRODUCED
from studies.ledger.entry import NOT_REPRODUCED, UNDECIDED, UNDERSPECIFIED, Measurement
from studies.runs.uncertainty import FAILS, HOLDS

#: What an answer says of the paper.
STATUS_OF = {HOLDS: REPRODUCED, FAILS: NOT_REPRODUCED, "holds if": UNDERSPECIFIED}


@dataclass(frozen=True)
class MeasuredClaim:
    """A sentence of the paper, its place, the study that decides it and the words that its verdicts have in common."""

    id: str
    title: str
    statement: str
    source: str
    study: str
    verdicts: str


@cache
def measured_claims() -> Mapping[str, MeasuredClaim]:
    """All of them by their names.

    >>> measured_claims()["E4"].study
    'classification'
    """
    text = resources.files("studies").joinpath("data/measured_claims.toml").read_text(encoding="utf-8")
    return {claim["id"]: MeasuredClaim(**claim) for claim in tomllib.loads(text)["claim"]}


def together(answers: Sequence[str]) -> str:
    """The answer of a sentence that is about all of several cases: one that fails refutes it.

    >>> together(["holds", "holds"]), together(["holds", "undecided"]), together(["undecided", "fails"])
    ('holds', 'undecided', 'fails')
    >>> together(["holds if T is small", "holds"])
    'holds if'
    """
    if FAILS in answers:
        return FAILS
    if answers and all(answer == HOLDS for answer in answers):
        return HOLDS
    return "holds if" if answers and all(answer.startswith(HOLDS) for answer in answers) else UNDECIDED


def claim_measurements(study: str, kept: Mapping[str, Any]) -> Iterator[Measurement]:
    """The claims that the kept page of a study decides; none where it has no verdict about them."""
    for claim in measured_claims().values():
        own = [verdict for verdict in kept.get("verdicts", ()) if claim.verdicts in verdict["statement"]]
        answers = [str(verdict["answer"]) for verdict in own]
        if claim.study != study or not own:
            continue
        answer = together(answers)
        tally = ", ".join(f"{answers.count(word)} {word}" for word in dict.fromkeys(answers))
        yield Measurement(
            claim.id, math.nan, word=STATUS_OF.get(answer, UNDECIDED), command=str(kept["command"]),
            answer=answers[0] if len(own) == 1 else f"{answer} ({tally})",
            note=str(own[0]["evidence"]) if len(own) == 1 else f"of {len(own)} verdicts {tally}",
            test="the verdicts of the study; one that fails refutes a sentence about all", detail={"verdicts": own},
        )  # fmt: skip

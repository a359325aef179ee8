"""What happens when two engines answer one obligation differently: it is kept in a file, and nothing is concluded."""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path

#: Environment variable with the folder for such obligations, and the folder without it.
FOLDER_VARIABLE, FOLDER = "RDGRAPH_OBLIGATIONS", "rdgraph-obligations"


def report_contradiction(script: str, statement: str, answers: dict[str, str]) -> str:
    """Write an obligation on which engines disagree to a file, warn, and return the reason for leaving it undecided.

    Args:
        script: the obligation in SMT-LIB.
        statement: its conditions in words.
        answers: the answer of each engine by name.
    """
    disagreement = " and ".join(f"{name} answers {answer}" for name, answer in answers.items())
    path = Path(os.environ.get(FOLDER_VARIABLE) or FOLDER) / f"{hashlib.sha256(script.encode()).hexdigest()[:16]}.smt2"
    header = "".join(f"; {line}\n" for line in [*statement.splitlines(), disagreement])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(header + script, encoding="utf-8")
        advice = f"please report the file {path}"
    except OSError as problem:
        advice = f"the obligation could not be written ({problem}); set {FOLDER_VARIABLE} to a folder"
    reason = f"two engines contradict each other on one obligation ({disagreement}): {advice}"
    warnings.warn(reason, RuntimeWarning, stacklevel=2)
    return reason

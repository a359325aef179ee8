"""What a preflight says of the slopes of a field: its Lipschitz and one-sided constants."""

from __future__ import annotations

from rdgraph.decisions.condition_words import in_words
from rdgraph.reports.findings import INFO, Finding
from rdgraph.reports.run_settings import RunSettings
from rdgraph.theory.lipschitz import lipschitz_global, lipschitz_local, one_sided


def slope_findings(run: RunSettings) -> list[Finding]:
    """One finding for each constant, with its norm."""
    entry = "h" if run.system.is_single else "u"
    questions = {"Lipschitz": lipschitz_global, f"Lipschitz, |{entry}|<=R": lipschitz_local, "one-sided": one_sided}
    found = []
    for name, question in questions.items():
        constant = question(run.system, run.normalisation)
        value = f"{in_words(constant.value)} ({constant.norm})" if constant.value is not None else "none"
        found.append(Finding(name, INFO, value, constant.note))
    return found

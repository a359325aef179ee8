"""What is proved of an equation with a formula in place of a learned function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gread.settings.gread_settings import GreadSettings
from rdgraph.errors import NotApplicable, Undecided
from rdgraph.reports.preflight_report import preflight
from rdgraph.systems.parser import parse


@dataclass(frozen=True)
class Proof:
    """A topic, how it stands (ok, info, if, problem, unknown), and what was found."""

    topic: str
    status: str
    text: str
    reason: str = ""


def proofs_of(equation: str, settings: GreadSettings, values: Mapping[str, float] | None = None) -> tuple[Proof, ...]:
    """The findings before a run of the network: with `values` for these coefficients, else for all positive ones.

    >>> found = proofs_of("-alpha*L@H + phi(H) where phi = gamma*tanh(H)", GreadSettings(method="rk4", step=0.5))
    >>> [proof.text for proof in found if proof.topic == "existence"]
    ['solutions exist for all time']
    """
    normalisation = settings.normalisation if settings.adjacency == "original" else "row"
    try:
        report = preflight(
            parse(equation), normalisation=normalisation, T=settings.time, method=settings.method, step=settings.step,
            coefficients=dict(values) if values else None,
        )  # fmt: skip
    except (NotApplicable, Undecided) as problem:
        return (Proof("preflight", "unknown", str(problem)),)
    return tuple(Proof(f.topic, f.status, f.text, f.reason) for f in report.findings)

"""What the gradient of a flow holds, and in which segments it can be computed with less."""

from __future__ import annotations

from gread.models.flow import POLYNOMIAL, SOLVE, STEPS, Flow

#: Lengths of segments that are tried, the longest first.
LENGTHS = (8, 4, 3, 2, 1)


def held_states(flow: Flow, degree: int, segment: int, *, soft: bool, single: bool) -> int:
    """States that the gradient of a flow holds at a time.

    Args:
        flow: How H(T) is reached.
        degree: That of its polynomial.
        segment: The steps or terms between two states that are kept; 0 keeps all.
        soft: Whether the weights of A want a gradient.
        single: Whether the system has one field; polynomials of several are not cut.
    """
    if flow.form == POLYNOMIAL:
        size = segment if segment and single else degree
        kept = 2 * (degree // size) if soft and 0 < size < degree else 0
        return min(size, degree) * (1 + soft) + kept
    steps = 1 if flow.schedule is None else flow.schedule.steps
    if flow.form != STEPS or not segment or segment >= steps:
        return 6 * flow.evaluations
    return 6 * flow.evaluations * segment // steps + steps // segment


def segment_lengths(flow: Flow, degree: int) -> list[int]:
    """Lengths of segments in which the gradient can be computed, the longest first; none where there is one way."""
    whole = degree if flow.form == POLYNOMIAL else 0 if flow.schedule is None else flow.schedule.steps
    return [size for size in LENGTHS if size < whole] if flow.form != SOLVE else []

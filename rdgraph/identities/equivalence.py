"""`equivalent`: are two systems the same flow? Proved, proved under conditions on the coefficients, or refuted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rdgraph.decisions.budget import within_budget
from rdgraph.errors import NotApplicable
from rdgraph.identities.comparison import UNDECIDED, Comparison, Equivalence, make_rules
from rdgraph.identities.field_equivalence import compare_fields
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System


def _undecided(problem: Exception) -> Equivalence:
    return Equivalence(UNDECIDED, note=str(problem), is_complete=False)


@within_budget(_undecided)
def equivalent(
    first: System | str,
    second: System | str,
    given: Iterable[str] = (),
    *,
    rescale_time: bool = False,
    fields: Mapping[str, str] | None = None,
) -> Equivalence:
    """Compare two right-hand sides for every graph, state and admissible coefficient.

    Coefficients of the same name are the same coefficient; what is assumed of it in either system counts.

    Args:
        first: a system, or a text or name that `parse` reads.
        second: what it is compared with.
        given: equations that may be used: coefficients ("beta = 0"), matrices ("W = 0"), operator hypotheses
            ("A@A = A", "L@L = L").
        rescale_time: whether the systems may differ by a positive factor, that is by the speed at which the same path
            is run through.
        fields: which field of the second system every field of the first one is, velocities included; without it
            fields of the same names, else all ways to pair them are tried, and the answer says which one it was.

    Returns:
        proved, equal under conditions, refuted with a counter-example, or undecided.

    Raises:
        InvalidArgument: a letter of two kinds, or a hypothesis that is none.
        AssumptionError: assumptions that contradict each other.

    >>> str(equivalent("-alpha*L@H + beta*L@H", "-alpha*L@H", given=["beta = 0"]))
    'proved'
    >>> str(equivalent("ST", "CGNN"))
    'equal if W = 0, alpha = 1, beta = 1'
    >>> str(equivalent("H**2/H", "H"))
    'proved where H != 0; only one side is defined elsewhere'
    >>> str(equivalent("H'' = -H - alpha*H'", "H' = V; V' = -alpha*V - H"))
    "proved with H = H, H' = V"
    """
    systems, hypotheses = (parse(first), parse(second)), tuple(given)
    if fields is not None or not all(system.is_single for system in systems):
        if rescale_time:
            raise NotApplicable("expected one field of first order in each system for rescale_time, got several")
        return compare_fields(*systems, hypotheses, fields)
    rules = make_rules([s.letters for s in systems], [s.assumptions for s in systems], hypotheses)
    question = Comparison(systems[0].expression, systems[1].expression, rules)
    return question.at_any_speed() if rescale_time else question.answer()

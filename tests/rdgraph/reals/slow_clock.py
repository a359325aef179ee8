"""Ask questions of every kind and print the answers as JSON; run as a program with a factor for the clock and a number.

The clock of limits runs faster by the factor, as on a machine that is slower by it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from random import Random
from typing import Any

import rdgraph as rd
from rdgraph.errors import RdgraphError
from rdgraph.reals import budget, judge

#: Systems of one field, linear or not, with unbounded, bounded and periodic functions, and conditions on coefficients.
SINGLE = (
    "AC", "BS", "-alpha*L@H + beta*tanh(A@H)", "-a*H**3 + b*H", "-alpha*L@H + k*H*(1 - H)", "-L@H + a*sin(H) - b*H",
    "-alpha*L@H + beta*H*exp(-H**2)", "a*A@H - b*H/(1 + H**2)", "-alpha*L@H + k*H**2*(1 - H)", "-H + relu(A@H - b)",
    "ST", "Z", "F", "-a*L@H - H**5 + b*H**3", "-alpha*L@H + beta*sigmoid(H) - H", "-alpha*L@H + a*cos(H)",
    "alpha**2*H + beta*A@H where alpha real", "-L@H + abs(H)*(1 - H)", "-a*L@L@H + b*H - H**3", "H*(A@H) - c*H**2",
)  # fmt: skip
SEVERAL = ("Brusselator", "Schnakenberg", "u' = -L@u + u*v - a*u; v' = -b*L@v - u*v + 1", "u' = v - u**3; v' = -u - v")
Question = Callable[[Any], Any]
OF_ONE: dict[str, Question] = {
    "existence": rd.existence,
    "box": lambda system: rd.invariant_box(system, "row"),
    "wide box": lambda system: rd.invariant_box(system, "symmetric"),
    "lipschitz": lambda system: rd.lipschitz_global(system, "row"),
    "euler": lambda system: rd.step_limit(system, "euler", "row"),
    "rk4": lambda system: rd.step_limit(system, "rk4", "symmetric"),
    "classify": rd.classify,
    "same": lambda system: rd.equivalent(system, "-alpha*L@H"),
    "energy": rd.theory.energy_law,
    "identify": rd.theory.identify,
}
OF_SEVERAL: dict[str, Question] = {
    "existence": rd.existence,
    "box": lambda system: rd.invariant_box(system, "row"),
    "states": rd.steady_states,
    "turing": rd.turing,
}


def questions() -> list[tuple[str, str, Question]]:
    """Every question about every system, shuffled so that any first part holds questions of different kinds."""
    every = [(system, kind, ask) for system in SINGLE for kind, ask in OF_ONE.items()]
    every += [(system, kind, ask) for system in SEVERAL for kind, ask in OF_SEVERAL.items()]
    Random(0).shuffle(every)
    return every


def answered(system: str, ask: Question) -> str:
    try:
        answer = ask(rd.parse(system))
    except RdgraphError as problem:
        return f"{type(problem).__name__}: {problem}"
    return json.dumps(answer.to_dict() if hasattr(answer, "to_dict") else str(answer), sort_keys=True, default=str)


def main(factor: float, count: int) -> None:
    clock = budget._clock

    def faster(thread: int) -> Callable[[], float]:
        seconds = clock(thread)
        return lambda: factor * seconds()

    budget._clock = faster
    judge.SECONDS /= factor
    answers = {f"{kind}: {system}": answered(system, ask) for system, kind, ask in questions()[:count]}
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))

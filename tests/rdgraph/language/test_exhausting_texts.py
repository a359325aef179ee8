"""Texts that would exhaust the algebra are read, or refused, quickly."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rdgraph.errors import AssumptionError
from rdgraph.systems.parser import parse
from tests.paths import ROOT
from tests.rdgraph.language.equation_texts import QUICK, nested


def tower(base: str, levels: int, exponent: int = 32) -> str:
    return nested(f"(?)**{exponent}", levels, base)


BOMBS = [
    "((((2**32)**32)**32)**32)*H",
    "(1+H+A@H+H0)**32*(1+H)**32",
    "(1+H+H0)**32*(1+H)**32",
    tower("2*H", 7),
    tower("H+H", 8),
    tower("0.5", 9) + "*H",
    tower("alpha/3", 8) + "*H",
    tower("2**-32", 9, -32) + "*H",
    tower("1+sqrt(2)", 5) + "*H",
    tower("exp(9*H)", 10),
    tower("A", 3) + "@H",
    tower("L", 6) + "@H",
    tower("I", 6) + "@H",
    tower("2*A", 6) + "@H",
    "@".join(["(L+2*A+beta*I)"] * 60) + "@H",
    "(beta*A + gamma*I)**32@H where beta node, gamma node",
    "H@(" + "@".join(["(W+k)"] * 30) + ") where k matrix",
    "A@A@A@(1+H+A@H+H0)**20",
    "abs((1+H+H0+A@H)**20)",
    "exp((1+H+H0+A@H)**20)",
    "*".join(["(1+H)"] * 140),
    "*".join(f"(1+{x})" for x in ("H", "H0", "A@H", "L@H", "A@H0", "alpha", "beta", "H@W", "tanh(H)", "sin(H)", "M")),
    "abs(exp(exp(exp(100)))-3)*H",
    "abs(sin(exp(exp(20))))*H",
    "1/(exp(exp(1e30))-5)*H",
    "abs(tanh(exp(1e9))-1)*H",
    nested("sqrt(3-sqrt(2-?/10))", 20, "1") + "*H",
    nested("abs(sin(?)-0.5)", 20, "3") + "*H",
    nested("(1+sqrt(?))**3", 12, "2") + "*H",
    "sqrt(" + "*".join(["1234567890123456789012345678901234567891"] * 60) + "+1)*H",
    nested("1/(1+sqrt(?))", 20),
    nested("sqrt(beta-?)", 25),
    nested("abs(beta-exp(?))", 25),
    nested("(L@?)**2", 4),
    nested("(?+1)*(?+2)", 5),
]


#: Runs in a second interpreter: a question that is not answered in time is given up, or the interpreter dies.
JUDGE = """
import json, resource, signal, sys, time
from rdgraph.errors import RdgraphError
from rdgraph.systems.parser import parse

def give_up(*_):
    raise TimeoutError("given up")

resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
signal.signal(signal.SIGVTALRM, give_up)
parse("tanh(A@H)").normal, parse("tanh(A@H)").sympy
for text in json.load(sys.stdin):
    for question in ("normal", "sympy", "latex"):
        signal.setitimer(signal.ITIMER_VIRTUAL, 3)
        signal.setitimer(signal.ITIMER_PROF, 6)
        system, start = parse(text), time.process_time()
        try:
            answer = getattr(system, question)
            answer = "answered" if not callable(answer) or answer() else "empty"
        except RdgraphError as error:
            answer = type(error).__name__
        except BaseException as error:
            answer = f"raised {error!r:.80}"
        print(json.dumps([text, question, answer, time.process_time() - start]), flush=True)
"""


@pytest.fixture(scope="module")
def verdicts() -> dict[tuple[str, str], tuple[str, float]]:
    """Answer and processor time per bomb and question; where the interpreter dies, the next bomb gets a new one."""
    found: dict[tuple[str, str], tuple[str, float]] = {}
    waiting = list(BOMBS)
    while waiting:
        done = subprocess.run(
            [sys.executable, "-c", JUDGE], cwd=ROOT, input=json.dumps(waiting), text=True, stdout=subprocess.PIPE,
            timeout=600, check=False,
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found |= {(text, question): (answer, seconds) for text, question, answer, seconds in lines}
        finished = sum(question == "latex" for _, question, *_ in lines)
        waiting = waiting[finished + 1 :]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("question", ["normal", "sympy", "latex"])
@pytest.mark.parametrize("text", BOMBS, ids=lambda text: text[:32])
def test_exhausting_systems_are_answered_or_declined_at_once(
    text: str, question: str, verdicts: dict[tuple[str, str], tuple[str, float]]
) -> None:
    answer, seconds = verdicts.get((text, question), ("did not finish", float("inf")))
    assert answer in ("answered", "NotApplicable")
    assert seconds < QUICK


def test_errors_of_assumptions_are_value_errors() -> None:
    with pytest.raises(AssumptionError):
        parse("beta*H", assume="beta imaginary")
    assert issubclass(AssumptionError, ValueError)

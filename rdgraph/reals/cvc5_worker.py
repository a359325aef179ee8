"""The program of cvc5's own process: reads obligations as SMT-LIB text and answers sat, unsat or unknown.

`rdgraph.reals.second_engine` starts it by its path, so it imports nothing of rdgraph. It ends when its input ends, and
the system ends it when one obligation takes more processor time than allowed, since cvc5 keeps no limit exactly.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def decide(text: str, resources: int) -> str:
    """cvc5's answer within `resources` of its units of effort; unknown where it cannot read the text."""
    import cvc5

    solver = cvc5.Solver(cvc5.TermManager())
    solver.setOption("rlimit-per", str(resources))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "obligation")
    symbols: Any = parser.getSymbolManager()
    try:
        while not (command := parser.nextCommand()).isNull():
            command.invoke(solver, symbols)
        answer = solver.checkSat()
    except (RuntimeError, cvc5.ParserException):
        return "unknown"
    return "sat" if answer.isSat() else "unsat" if answer.isUnsat() else "unknown"


def serve() -> None:
    """Answer obligations: a line "BYTES RESOURCES SECONDS" and the text, for each a line with the answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what cvc5 itself prints is no answer
    requests = sys.stdin.buffer
    while line := requests.readline():
        size, resources, seconds = line.split()
        text = requests.read(int(size)).decode()
        _limit(float(seconds))
        answer = decide(text, int(resources))
        _limit(0.0)
        replies.write(f"{answer}\n".encode())
        replies.flush()


def _limit(seconds: float) -> None:
    """Let the system end this process after some seconds of processor time; 0 lifts the limit."""
    if hasattr(signal, "ITIMER_PROF"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    serve()

"""cvc5 in its own process: it confirms, can be ended at any moment, and never answers by contradicting z3."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import sympy as sp

from rdgraph.answers import Answer, AnswersByName, Status
from rdgraph.errors import Undecided
from rdgraph.reals import judge, second_engine
from rdgraph.reals.basis import ALONE, BOTH, EVALUATED, Watch, record_engines, watched
from rdgraph.reals.budget import attempt, within_budget
from rdgraph.reals.judge import FOLDER, FOLDER_VARIABLE, Possibility, possible, remembered
from rdgraph.reals.second_engine import Consultation, Opinion
from tests.paths import ROOT

X, Y = sp.symbols("x y", real=True)
A = sp.Symbol("a", positive=True)
TRUE, FALSE = "(declare-const x Real)(assert (> x {0}.0))", "(declare-const x Real)(assert (< (* x x) (- {0}.0)))"
#: cvc5 does not decide it within a second, nor does it keep a limit of time.
ENDLESS = """(declare-const x Real)(declare-const y Real)(declare-const z Real)
(assert (= (+ (* x x x x x y) (* y y y y z z z) (* z z z x)) 1.0))
(assert (= (+ (* x y y y y y) (* z z z z z z x) 7.0) (* x x x y z)))
(assert (= (+ (* x x x x z) (* y y y y y y y)) (* 3.0 x y z z z z)))
(assert (> (+ (* x x x) (* y z z)) (* y y y)))"""


@pytest.fixture
def process() -> Any:
    """The process after a first answer."""
    assert ask(TRUE, 0) is Opinion.SAT
    return second_engine._processes[os.getpid()]


def ask(text: str, number: int) -> Opinion:
    second_engine._opinions.clear()
    return Consultation(text.format(number)).opinion()


def no_square(number: int) -> sp.Basic:
    return sp.Lt(X**2 - X * Y + Y**2, -number)


# ---------------------------------------------------------------------- the process
def test_what_it_answers(process: Any) -> None:
    assert ask(FALSE, 1) is Opinion.UNSAT
    assert ask("(declare-const x Real)(assert (> x", 2) is Opinion.NONE
    assert ask(FALSE, 3) is Opinion.UNSAT


def test_an_answer_is_remembered_by_the_text(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(FALSE, 4) is Opinion.UNSAT
    monkeypatch.setattr(second_engine._Process, "take", lambda *_: pytest.fail("asked a second time"))
    assert Consultation(FALSE.format(4)).opinion() is Opinion.UNSAT


def test_a_process_that_was_ended_starts_again(process: Any) -> None:
    first = process.running.pid
    process.running.kill()
    assert ask(FALSE, 5) is Opinion.UNSAT
    assert process.running.pid != first


def test_an_obligation_that_takes_too_long_has_no_answer(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_engine, "SECONDS", 0.3)
    monkeypatch.setattr(second_engine, "RESOURCES", 10**12)
    assert ask(ENDLESS, 0) is Opinion.NONE
    assert process.running.returncode == -signal.SIGPROF
    assert ask(FALSE, 6) is Opinion.UNSAT


def test_a_process_that_hangs_is_ended(process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_engine, "PATIENCE", 0.2)
    os.kill(process.running.pid, signal.SIGSTOP)
    assert ask(FALSE, 7) is Opinion.NONE
    monkeypatch.setattr(second_engine, "PATIENCE", 60.0)
    assert ask(FALSE, 8) is Opinion.UNSAT


def test_a_consultation_that_is_dropped_leaves_the_process_to_the_next(process: Any) -> None:
    for text in (ENDLESS, TRUE.format(9)):
        Consultation(text).drop()
    assert ask(FALSE, 10) is Opinion.UNSAT


def test_an_interrupt_while_waiting(process: Any) -> None:
    threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        deque(iter(lambda: ask(ENDLESS, 0), None), maxlen=0)
    assert ask(FALSE, 11) is Opinion.UNSAT


def test_limits_of_time_leave_no_exchange_half_done(process: Any) -> None:
    for number in range(30):
        try:
            attempt(0.002, lambda: [ask(FALSE, 1000 + k) for k in range(40)])
        except Undecided:
            assert ask(TRUE, 2000 + number) is Opinion.SAT


def test_threads_share_the_process(process: Any) -> None:
    answers: list[Opinion] = []
    texts = [text.format(100 + k) for k in range(6) for text in (TRUE, FALSE)]
    threads = [threading.Thread(target=lambda t=t: answers.append(Consultation(t).opinion())) for t in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(o.value for o in answers) == ["sat"] * 6 + ["unsat"] * 6


PROGRAM = """
import os
from rdgraph.reals.second_engine import Consultation, _processes
def ask(k):
    return Consultation(f"(declare-const x Real)(assert (< (* x x) (- {k}.0)))").opinion().value
print(ask(1))
parent = _processes[os.getpid()].running.pid
child = os.fork() if FORKS else None
if child == 0:
    print(ask(2), _processes[os.getpid()].running.pid != parent, flush=True)
elif child:
    os.waitpid(child, 0)
    print(ask(3), _processes[os.getpid()].running.pid == parent)
if child != 0:
    print(parent)
"""


@pytest.mark.parametrize("forks", [False, True])
def test_programs_without_a_main_module_and_forks_end_in_silence(forks: bool) -> None:
    """The program is read from the standard input; nothing is printed at its end, and the process of cvc5 ends too."""
    run = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error"], input=f"FORKS = {forks}\n{PROGRAM}", text=True,
        capture_output=True, cwd=ROOT, timeout=120, check=True,
    )  # fmt: skip
    *lines, number = run.stdout.splitlines()
    assert lines == (["unsat", "unsat True", "unsat True"] if forks else ["unsat"])
    assert run.stderr == ""
    assert not Path(f"/proc/{number}").exists()


def test_an_installation_without_cvc5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_engine, "is_installed", lambda: False)
    ruling = possible(no_square(201))
    assert (ruling.outcome, ruling.engines) == (Possibility.IMPOSSIBLE, ALONE)


def test_quotients_are_cleared_for_cvc5_where_it_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, given = [], Consultation.opinion

    def opinion(self: Consultation) -> Opinion:
        asked.append(self.text)
        return Opinion.NONE if "(/ x y)" in self.text else given(self)

    monkeypatch.setattr(Consultation, "opinion", opinion)
    x, y = sp.symbols("x y", real=True)
    ruling = possible(x / y < sp.Rational(-1, 7), x * y > sp.Rational(1, 7))
    assert (ruling.outcome, ruling.engines) == (Possibility.IMPOSSIBLE, BOTH)
    assert ["(/ x y)" in text for text in asked] == [True, False]


def test_this_program_never_loads_cvc5() -> None:
    program = (
        "import sys; from contextlib import suppress; from studies.cli.app import main; sys.argv = ['rdgraph', {}]\n"
        "with suppress(SystemExit): main()\n"
        "assert 'cvc5' not in sys.modules; assert {} or 'z3' not in sys.modules"
    )
    for words, needs_solver in (("'--help'", False), ("'verify', 'M1.1'", True)):
        command = [sys.executable, "-c", program.format(words, needs_solver)]
        subprocess.run(command, capture_output=True, cwd=ROOT, timeout=300, check=True)


# ---------------------------------------------------------------------- who decided
class Liar:
    """An engine that gives the wrong answer."""

    def __init__(self, text: str) -> None:
        self.text = text

    def opinion(self) -> Opinion:
        return Opinion.SAT if Consultation(self.text).opinion() is Opinion.UNSAT else Opinion.UNSAT

    def drop(self) -> None:
        pass


def test_rulings_say_who_decided() -> None:
    assert possible(no_square(202)).engines == BOTH
    assert possible(X**2 > 202, X > 1).engines == EVALUATED
    assert possible(sp.Eq(X**2, 202), X > 0).engines == BOTH
    assert possible(sp.false).engines == ""


def test_engines_that_contradict_each_other_decide_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(judge, "Consultation", Liar)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "kept"))
    before = judge.statistics.contradictions
    with pytest.warns(RuntimeWarning, match="report"), pytest.raises(Undecided) as problem:
        possible(no_square(203))
    (file,) = (tmp_path / "kept").iterdir()
    assert str(file) in str(problem.value)
    assert judge.statistics.contradictions == before + 1
    text = file.read_text(encoding="utf-8")
    assert "; z3 answers unsat and cvc5 answers sat" in text
    monkeypatch.undo()
    assert Consultation(text.replace("(set-logic QF_NRA)", "")).opinion() is Opinion.UNSAT
    assert possible(no_square(203)).engines == BOTH, "a contradiction is not remembered"


def test_a_lie_about_a_point_is_a_contradiction_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(judge, "Consultation", Liar)
    monkeypatch.chdir(tmp_path)
    with pytest.warns(RuntimeWarning), pytest.raises(Undecided):
        possible(sp.Eq(X**2, 204), X > 0)
    assert len(list((tmp_path / FOLDER).iterdir())) == 1


def test_a_folder_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(judge, "Consultation", Liar)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning), pytest.raises(Undecided, match=FOLDER_VARIABLE):
        possible(no_square(205))


def test_answers_say_who_decided_also_when_they_are_remembered() -> None:
    @within_budget()
    @remembered(8)
    def question(number: int) -> Answer:
        return Answer(possible(no_square(number)).outcome is Possibility.IMPOSSIBLE, Status.PROVED)

    for _ in range(2):
        answer = question(206)
        assert (answer.engines, answer.to_dict()["engines"]) == (BOTH, BOTH)
        both = AnswersByName({"row": answer, "symmetric": question(206)})
        assert both.engines == BOTH
    other = Answer(True, Status.PROVED)
    record_engines(other, Watch())
    assert (other.engines, AnswersByName({"row": answer, "column": other}).engines) == ("", f"{BOTH} (row)")
    with watched() as basis:
        question(206)
    assert dict(basis.engines) == {BOTH: 1}

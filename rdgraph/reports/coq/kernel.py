"""`coqc` on generated files: does Coq's kernel accept them, and on which axioms does each theorem rest?

`python -m rdgraph.reports.coq.kernel DIR` writes and checks all of them and renews the record of what was accepted.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rdgraph.errors import MissingDependency
from rdgraph.reports.coq.record import fingerprint, is_checked, write_record
from rdgraph.reports.coq.sheets import Library, Sheet, sheets, write_sheets

#: The axioms of Coq's real numbers and of the standard library's analysis; theorems about matrices use none.
REAL_AXIOMS = frozenset(
    {
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
ALLOWED = {
    Library.OPERATORS: frozenset[str](),
    Library.RATIONALS: frozenset[str](),
    Library.REALS: REAL_AXIOMS,
    Library.SOLUTIONS: REAL_AXIOMS,
}
_CLOSED = "Closed under the global context"
SECONDS = 900


@dataclass(frozen=True)
class KernelCheck:
    """coqc's answer about one sheet."""

    sheet: Sheet
    sha256: str
    accepted: bool
    axioms: frozenset[str]
    message: str
    seconds: float


def find_coqc() -> str | None:
    """The path of coqc; None where Coq is not installed."""
    return shutil.which("coqc")


def compile_libraries(folder: Path, chosen: Iterable[Sheet]) -> None:
    """Compile the libraries that the sheets import, in a folder to which `write_sheets` wrote."""
    used = {one.library for one in chosen}
    used |= {Library.REALS} if Library.SOLUTIONS in used else set()
    for library in (one for one in Library if one in used):
        code, output = _coqc(folder, library.value)
        if code != 0:
            raise MissingDependency(
                f"coqc rejects the library {library.value}.v: {output.strip()[-300:]}; "
                "`make coq` installs the versions of Coq and mathcomp it is written for"
            )


def check_sheet(sheet: Sheet, folder: Path) -> KernelCheck:
    """Run coqc on a written sheet; accepted if it compiles and every theorem rests on allowed axioms alone."""
    started, sha256 = time.perf_counter(), fingerprint(sheet)
    code, output = _coqc(folder, sheet.name)
    seconds = time.perf_counter() - started
    axioms = frozenset(axiom_names(output))
    if code != 0:
        return KernelCheck(sheet, sha256, False, axioms, output.strip(), seconds)
    reports = output.count(_CLOSED) + output.count("Axioms:")
    if reports != len(sheet.theorems):
        return KernelCheck(
            sheet, sha256, False, axioms, f"{reports} reports for {len(sheet.theorems)} theorems", seconds
        )
    extra = axioms - ALLOWED[sheet.library]
    return KernelCheck(
        sheet, sha256, not extra, axioms, f"further axioms: {', '.join(sorted(extra))}" if extra else "", seconds
    )


def check_sheets(
    folder: Path, chosen: Sequence[Sheet], *, jobs: int = 2, tell: Callable[[KernelCheck], None] | None = None
) -> list[KernelCheck]:
    """Write the sheets and their libraries to a folder and check all of them."""
    write_sheets(folder, chosen)
    compile_libraries(folder, chosen)

    results = []
    with ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(lambda one: check_sheet(one, folder), chosen):
            results.append(result)
            if tell is not None:
                tell(result)
    return results


def axiom_names(output: str) -> Iterable[str]:
    """The names that `Print Assumptions` lists.

    >>> list(axiom_names("Axioms:\\nsig_not_dec : forall P : Prop, {~ ~ P} + {~ P}\\nlong_name\\n  : nat\\n"))
    ['sig_not_dec', 'long_name']
    """
    for block in output.split("Axioms:")[1:]:
        for line in block.split(_CLOSED)[0].splitlines():
            if match := re.match(r"([A-Za-z_][\w.']*)(?: :|$)", line):
                yield match.group(1)


def _coqc(folder: Path, name: str) -> tuple[int, str]:
    coqc = find_coqc()
    if coqc is None:
        raise MissingDependency("coqc is not installed; run `make coq`, or install Debian's package coq")
    command = [coqc, "-q", "-w", "none", "-Q", ".", "Rdgraph", f"{name}.v"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder)
    except subprocess.TimeoutExpired:
        return 1, f"coqc took longer than {SECONDS} s"
    return done.returncode, done.stdout + done.stderr


def main(arguments: Sequence[str]) -> int:
    """Check the sheets in a folder, print a line for each, and record which texts were accepted; 0 if all were.

    `--changed` leaves out the sheets whose text is recorded already.
    """
    folder, *options = arguments
    chosen = [one for one in sheets() if "--changed" not in options or not is_checked(one)]
    accepted = {one.name: fingerprint(one) for one in sheets() if one not in chosen}

    def report(result: KernelCheck) -> None:
        state = "accepted" if result.accepted else f"REJECTED: {result.message}"
        _print(f"{result.sheet.name}: {len(result.sheet.theorems)} theorems, {result.seconds:.1f} s, {state}")
        if result.accepted:
            accepted[result.sheet.name] = result.sha256
            write_record(accepted)

    write_record(accepted)
    results = check_sheets(Path(folder), chosen, tell=report)
    seconds = sum(r.seconds for r in results)
    _print(f"{sum(r.accepted for r in results)} of {len(results)} files accepted, {seconds:.0f} s of coqc")
    return 0 if all(r.accepted for r in results) else 1


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

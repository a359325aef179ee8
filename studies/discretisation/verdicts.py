"""Verdicts on the published settings: are they solved, do modes change their class, what does it cost?"""

from __future__ import annotations

from collections.abc import Sequence

from studies.discretisation.rows import LINEAR
from studies.runs.tables import MutableRow

#: An error below this share of the largest gain counts as solving the equation.
SOLVED = 0.01
HOLDS, FAILS = "holds", "fails"
Finding = tuple[str, str, str]


def solved(modes: Sequence[MutableRow]) -> list[Finding]:
    """Per solver and kind of coefficients: is every linear setting solved?"""
    found = []
    for solver, which in (("rk4", "typical"), ("rk4", "worst"), ("euler", "typical"), ("euler", "worst")):
        rows = [r for r in modes if r["solver"] == solver and r["reaction"] in LINEAR]
        bad = [r for r in rows if float(r[f"error_{which}"]) > SOLVED]
        errors = [float(r[f"error_{which}"]) for r in rows]
        named = f"; not: {setting_names(bad)}" if bad else ""
        found.append((
            f"the layer is the continuous equation: {solver_title(solver)} settings solve it to 1 % at {which} "
            "coefficients",
            FAILS if bad else HOLDS,
            f"{len(rows) - len(bad)} of {len(rows)} linear settings; errors between {min(errors):.1g} and "
            f"{max(errors):.1g}{named}",
        ))  # fmt: skip
    return found


def kept_classes(modes: Sequence[MutableRow]) -> list[Finding]:
    """Do modes change their class or their sign?"""
    linear = [r for r in modes if r["reaction"] in LINEAR]
    found = []
    for name, words in (
        ("amplified", "amplifies a mode that the equation damps"),
        ("flipped", "gives a mode the wrong sign"),
    ):
        bad = [r for r in linear if float(r[name]) > 0]
        most = max(bad, key=lambda r: float(r[name]), default=None)
        share = f"; most, {float(most[name]):.0%} of [0, 2], for {setting_names([most])}" if most else ""
        solvers = {s: sum(r["solver"] == s for r in bad) for s in ("euler", "rk4")}
        found.append((
            f"no published setting {words}",
            FAILS if bad else HOLDS,
            f"{len(bad)} of {len(linear)} linear settings do for some coefficients they can reach, {solvers['euler']} "
            f"with Euler and {solvers['rk4']} with RK4{share}: {setting_names(bad)}"
            if bad
            else f"none of {len(linear)} does",
        ))  # fmt: skip
    return found


def inert_steps(modes: Sequence[MutableRow]) -> Finding:
    """Steps longer than the end time."""
    seen = {(r["reaction"], r["dataset"]): r for r in modes}
    bad = [r for r in seen.values() if float(r["step"]) > float(r["T"])]
    return (
        "the printed step size is the step taken",
        FAILS if bad else HOLDS,
        f"{len(bad)} of {len(seen)} settings have a step longer than T and take one step of length T: "
        f"{setting_names(bad)}"
        if bad
        else f"true of all {len(seen)} settings",
    )


def product_counts(products: Sequence[MutableRow], tolerance: float) -> Finding:
    """Products of RK4 against those of the exact method."""
    rows = [r for r in products if r["solver"] == "rk4"]
    total = {
        name: sum(int(r[name]) for r in rows) for name in ("solver_products", "exact_typical", "exact_worst")
    }  # fmt: skip
    dearer = [r for r in rows if int(r["exact_worst"]) > int(r["solver_products"])]
    fewer, most = len(rows) - len(dearer), max((int(r["steps"]) for r in dearer), default=0)
    return (
        f"the exact method reaches {tolerance:g} with fewer sparse products than the published RK4",
        HOLDS if not dearer else FAILS if not fewer else f"holds if RK4 takes more than {most} steps",
        f"all {len(rows)} RK4 settings together: {total['solver_products']} products by RK4, {total['exact_typical']} "
        f"by the exact method at typical and {total['exact_worst']} at all reachable coefficients; no more than RK4's "
        f"in {fewer} of {len(rows)}",
    )


def setting_names(rows: Sequence[MutableRow]) -> str:
    return ", ".join(f"{r['reaction']} {r['dataset']}" for r in rows)


def solver_title(solver: str) -> str:
    return {"euler": "Euler", "rk4": "RK4"}[solver]

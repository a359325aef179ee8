"""Do the paper's best settings solve their equations? Gains of the solver and of the exact flow, mode by mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
import torch

import rdgraph as rd
from gread.settings.presets import Preset, paper_presets
from rdgraph.errors import NotApplicable
from rdgraph.systems.system import System
from rdgraph.vocabulary.methods import tableau
from studies.runs.cell_work import each_cell
from studies.runs.chart import Chart, FieldMap, Line, Panel
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS
from studies.runs.word_sheets import Verdict, WordSheet

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- rows
# The response of a solver to every mode lam in [0, 2], and the exact response of the equation.
#
# F, AC and Z are nonlinear; near each state at rest h* they become -alpha*L@H + beta*r'(h*)*H.

SHEET = WordSheet("discretisation")
LINEAR = ("BS", "ST", "FB", "FB*")
CLASSICAL = ("F", "AC", "Z")
#: The paper's abbreviations of adjacencies and of kinds of coefficients.
SHORT = {"original": "OA", "soft": "SA", "scalar": "SC", "channel": "VC"}
Gain = Callable[[np.ndarray, float, float], np.ndarray]
#: Gains this close to one are neither damped nor amplified, and gains this close to zero have no sign.
NEUTRAL = 1e-9


@dataclass(frozen=True)
class LinearForm:
    """A linear equation for a reaction: itself, or its linearisation at a state at rest."""

    reaction: str
    name: str
    system: System


@cache
def forms(reaction: str) -> tuple[LinearForm, ...]:
    """The linear equations behind a reaction of the catalogue.

    >>> [str(f.system) for f in forms("F")]
    ['-alpha*L@H + 1*beta*H', '-alpha*L@H + -1*beta*H']
    >>> forms("BS")[0].name
    'BS'
    """
    system = rd.catalogue[reaction]
    if system.structure.linear:
        return (LinearForm(reaction, reaction, system),)
    h = sp.Symbol("h", real=True)
    result: dict[sp.Expr, LinearForm] = {}
    field = system.structure.scalar_field(h, h)
    for rest in sorted(sp.solveset(field, h, sp.S.Reals), key=abs):
        slope = sp.diff(field, h).subs(h, rest)
        beta = next(s for s in slope.free_symbols) if slope.free_symbols else None
        factor = sp.simplify(slope / beta) if beta is not None else sp.S.Zero
        if not factor.is_number:
            raise NotApplicable(f"expected a reaction whose slope at rest is a multiple of beta, got {slope}")
        text = f"-alpha*L@H + {factor}*beta*H" if factor else "-alpha*L@H"
        result.setdefault(factor, LinearForm(reaction, f"{reaction} near {abs(rest)}", rd.parse(text)))
    return tuple(result.values())


def steps(setting: Preset) -> int:
    """Number of steps of the solver, the last one shortened.

    >>> steps(paper_presets()[0])
    2
    """
    model = setting.config.gread
    return math.ceil(sp.Rational(repr(model.time)) / sp.Rational(repr(model.step)))


def gains(form: LinearForm, setting: Preset) -> tuple[Gain, Gain]:
    """Exact and computed gain as functions of lam, alpha, beta."""
    names = sp.symbols("lam alpha beta")
    model = setting.config.gread
    exact = rd.theory.response(form.system, T=model.time)
    computed = rd.theory.response(form.system, T=model.time, method=model.method, step=model.step)
    return _function(names, exact), _function(names, computed)


def _function(names: Sequence[sp.Symbol], expression: sp.Expr) -> Gain:
    raw = sp.lambdify(names, expression, "numpy")

    def gain(lam: np.ndarray, alpha: float, beta: float) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):  # the removable point of a source term, chosen around
            return np.array(np.broadcast_to(np.asarray(raw(lam, alpha, beta), dtype=float), lam.shape))

    return gain


def compare(exact: np.ndarray, computed: np.ndarray) -> dict[str, float]:
    """Error relative to the largest exact gain, and shares of modes that change class or sign.

    >>> compare(np.array([1.0, 0.5]), np.array([1.0, -1.5]))
    {'error': 2.0, 'amplified': 0.5, 'damped': 0.0, 'flipped': 0.5}
    """
    grows, falls = np.abs(exact) > 1 + NEUTRAL, np.abs(exact) < 1 - NEUTRAL
    signs = (np.abs(exact) > NEUTRAL) & (np.abs(computed) > NEUTRAL)
    return {
        "error": float(np.abs(computed - exact).max() / np.abs(exact).max()),
        "amplified": float((falls & (np.abs(computed) > 1 + NEUTRAL)).mean()),
        "damped": float((grows & (np.abs(computed) < 1 - NEUTRAL)).mean()),
        "flipped": float((signs & (exact * computed < 0)).mean()),
    }


def coefficient_box(setting: Preset, chosen: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The reachable coefficients of a setting; a scalar beta is positive, since it passes a sigmoid."""
    betas = [b for b in chosen["betas"] if b > 0 or setting.config.gread.beta == "channel"]
    return [(alpha, beta) for alpha in chosen["alphas"] for beta in betas]


def mode_rows(setting: Preset, chosen: Mapping[str, Any]) -> list[MutableRow]:
    """Rows of the linear forms: errors at typical and at the worst coefficients, and shares of changed modes."""
    lam, model = np.linspace(0.0, 2.0, chosen["points"]), setting.config.gread
    rows: list[MutableRow] = []
    for form in forms(setting.reaction):
        exact, computed = gains(form, setting)

        def at(alpha: float, beta: float, e: Gain = exact, c: Gain = computed) -> dict[str, float]:
            return compare(e(lam, alpha, beta), c(lam, alpha, beta))

        box = {pair: at(*pair) for pair in coefficient_box(setting, chosen)}
        worst = max(box, key=lambda pair: box[pair]["error"])
        typical = at(chosen["typical_alpha"], chosen["typical_beta"])
        rows.append({
            "reaction": setting.reaction, "dataset": setting.dataset, "form": form.name,
            "adjacency": SHORT[model.adjacency], "beta": SHORT[model.beta], "T": model.time,
            "step": float(model.step or 0), "solver": model.method, "steps": steps(setting),
            "error_typical": _short(typical["error"]), "error_worst": _short(box[worst]["error"]),
            "alpha_worst": worst[0], "beta_worst": worst[1],
            "flipped_typical": _short(typical["flipped"]), "amplified_typical": _short(typical["amplified"]),
            **{n: _short(max(errors[n] for errors in box.values())) for n in ("amplified", "damped", "flipped")},
        })  # fmt: skip
    return rows


def product_row(setting: Preset, chosen: Mapping[str, Any]) -> MutableRow:
    """Sparse products of the published solver and of `exact`, at typical and over all reachable coefficients.

    The degree of `exact` depends on the equation, the time and the kind of operator, not on the graph, so a ring is
    used. A symmetric operator gets a Chebyshev series, a row-stochastic one (soft adjacency) a power series.
    """
    system = rd.parse(rd.catalogue[setting.reaction].text, {"alpha": "channel", "beta": "channel"})
    model = setting.config.gread
    normalisation = "symmetric" if model.adjacency == "original" else "row"
    operator = rd.generators.ring(4).operator(normalisation, dtype=torch.float64)
    counts = {}
    typical = [(chosen["typical_alpha"], chosen["typical_beta"])]
    for name, pairs in (("exact_typical", typical), ("exact_worst", coefficient_box(setting, chosen))):
        alpha, beta = torch.tensor(pairs, dtype=torch.float64).T
        field = rd.lower(system, operator, {"alpha": alpha, "beta": beta})
        start = torch.ones(4, len(pairs), dtype=torch.float64)
        solved = rd.solve(field, start, [0.0, model.time], "exact", rtol=chosen["tolerance"])
        counts[name] = solved.stats.products
    stages = len(tableau(model.method).weights)
    return {
        "reaction": setting.reaction, "dataset": setting.dataset, "adjacency": SHORT[model.adjacency],
        "solver": model.method, "steps": steps(setting),
        "solver_products": steps(setting) * stages * field.plan.products, **counts,
    }  # fmt: skip


def _short(value: float) -> float:
    """A number with six digits, to hide rounding differences of libraries."""
    return float(f"{value:.6g}")


# ---------------------------------------------------------------------- figures
# Figures of discretisation errors: a map of all settings, and the worst responses.

#: Range of errors on the colour scale.
SHOWN = (1e-7, 1e2)
WORST_DRAWN, DRAWN_POINTS = 6, 200


def map_rows(modes: Sequence[MutableRow]) -> list[MutableRow]:
    """Rows of every reaction and data set with the largest error over its forms."""
    largest: dict[tuple[Any, Any], MutableRow] = {}
    for row in modes:
        key = row["reaction"], row["dataset"]
        names = ("reaction", "dataset", "solver", "steps", "error_typical", "error_worst")
        new = {name: row[name] for name in names}
        old = largest.setdefault(key, new)
        for name in ("error_typical", "error_worst"):
            old[name] = max(float(old[name]), float(row[name]))
    return list(largest.values())


def error_map(modes: Sequence[MutableRow], which: str) -> FieldMap:
    """Map of the errors at typical or worst coefficients by reaction and data set; E: Euler, R: RK4."""
    rows = {(str(row["reaction"]), str(row["dataset"])): row for row in map_rows(modes)}
    reactions, datasets = (list(dict.fromkeys(key[k] for key in rows)) for k in (0, 1))
    errors = np.full((len(reactions), len(datasets)), np.nan)
    texts = [[""] * len(datasets) for _ in reactions]
    for (reaction, dataset), row in rows.items():
        i, j = reactions.index(reaction), datasets.index(dataset)
        errors[i, j] = max(float(row[f"error_{which}"]), 1e-16)
        exponent = f"{errors[i, j]:.0e}".replace("e-0", "e-").replace("e+0", "e+")
        texts[i][j] = f"{str(row['solver'])[0].upper()} {exponent}"
    labels = [f"{name} (linearised)" if name in CLASSICAL else name for name in reactions]
    return FieldMap(
        labels, datasets, errors, errors <= SOLVED, f"Error at {which} coefficients", SHOWN[1],
        "error relative to the largest gain", signed=False, lowest=SHOWN[0], texts=texts,
    )  # fmt: skip


def worst_cases(modes: Sequence[MutableRow]) -> list[MutableRow]:
    """Rows of the worst linear setting of every reaction, then of the next worst ones."""
    ordered = sorted((r for r in modes if r["reaction"] in LINEAR), key=lambda r: -float(r["error_worst"]))
    first = [next(r for r in ordered if r["reaction"] == name) for name in LINEAR]
    return (first + [r for r in ordered if r not in first])[:WORST_DRAWN]


def worst_chart(modes: Sequence[MutableRow], points: int) -> tuple[Chart, list[MutableRow]]:
    """Exact and computed responses of the worst cases, and the numbers drawn."""
    lam = np.linspace(0.0, 2.0, points)
    panels: list[Panel] = []
    drawn: list[MutableRow] = []
    for row in worst_cases(modes):
        setting = _setting(row)
        model = setting.config.gread
        alpha, beta = float(row["alpha_worst"]), float(row["beta_worst"])
        exact, computed = (g(lam, alpha, beta) for g in gains(forms(setting.reaction)[0], setting))
        title = (
            f"{setting.reaction}, {setting.dataset}: {model.method}, step {model.step:g}, T {model.time:g}, "
            f"α {alpha:g}, β {beta:g}"
        )
        thin = slice(None, None, max(1, points // DRAWN_POINTS))
        lines = [Line("exact", lam[thin], exact[thin]), Line("solver", lam[thin], computed[thin], look=8)]
        panels.append(Panel(title, lines))
        drawn += [
            {"reaction": setting.reaction, "dataset": setting.dataset, "alpha": alpha, "beta": beta,
             "lam": float(f"{x:.6g}"), "exact": float(f"{e:.9g}"), "computed": float(f"{c:.9g}")}
            for x, e, c in zip(lam, exact, computed, strict=True)
        ]  # fmt: skip
    return Chart(panels, "λ, eigenvalue of L", "gain", y_scale="symlog"), drawn


def _setting(row: MutableRow) -> Preset:
    return next(s for s in paper_presets() if (s.reaction, s.dataset) == (row["reaction"], row["dataset"]))


# ---------------------------------------------------------------------- verdicts
# Verdicts on the published settings: accuracy, changed modes, and cost.

#: An error below this share of the largest gain counts as solving the equation.
SOLVED = 0.01


def solved(modes: Sequence[MutableRow]) -> list[Verdict]:
    """Verdicts: is every linear setting solved, by solver and kind of coefficients?"""
    result = []
    for solver, which in (("rk4", "typical"), ("rk4", "worst"), ("euler", "typical"), ("euler", "worst")):
        rows = [r for r in modes if r["solver"] == solver and r["reaction"] in LINEAR]
        bad = [r for r in rows if float(r[f"error_{which}"]) > SOLVED]
        errors = [float(r[f"error_{which}"]) for r in rows]
        named = f"; not: {setting_names(bad)}" if bad else ""
        result.append(SHEET.verdict(
            "solved", FAILS if bad else HOLDS, solver=solver_title(solver), which=which, good=len(rows) - len(bad),
            all=len(rows), least=min(errors), most=max(errors), named=named,
        ))  # fmt: skip
    return result


def class_changes(modes: Sequence[MutableRow]) -> list[Verdict]:
    """Verdicts: do modes change their class or their sign?"""
    linear = [r for r in modes if r["reaction"] in LINEAR]
    result = []
    for name, words in (
        ("amplified", "amplifies a mode that the equation damps"),
        ("flipped", "gives a mode the wrong sign"),
    ):
        bad = [r for r in linear if float(r[name]) > 0]
        most = max(bad, key=lambda r: float(r[name]), default=None)
        share = f"; most, {float(most[name]):.0%} of [0, 2], for {setting_names([most])}" if most else ""
        solvers = {s: sum(r["solver"] == s for r in bad) for s in ("euler", "rk4")}
        result.append((
            f"no published setting {words}",
            FAILS if bad else HOLDS,
            f"{len(bad)} of {len(linear)} linear settings do for some coefficients they can reach, {solvers['euler']} "
            f"with Euler and {solvers['rk4']} with RK4{share}: {setting_names(bad)}"
            if bad
            else f"none of {len(linear)} does",
        ))  # fmt: skip
    return result


def inert_steps(modes: Sequence[MutableRow]) -> Verdict:
    """Verdict: is every step shorter than the end time?"""
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


def product_counts(products: Sequence[MutableRow], tolerance: float) -> Verdict:
    """Verdict: does the exact method need fewer products than RK4?"""
    rows = [r for r in products if r["solver"] == "rk4"]
    total = {
        name: sum(int(r[name]) for r in rows) for name in ("solver_products", "exact_typical", "exact_worst")
    }  # fmt: skip
    dearer = [r for r in rows if int(r["exact_worst"]) > int(r["solver_products"])]
    fewer, most = len(rows) - len(dearer), max((int(r["steps"]) for r in dearer), default=0)
    return SHEET.verdict(
        "products", HOLDS if not dearer else FAILS if not fewer else f"holds if RK4 takes more than {most} steps",
        tolerance=tolerance, all=len(rows), total=total, fewer=fewer,
    )  # fmt: skip


def setting_names(rows: Sequence[MutableRow]) -> str:
    """Names of reaction and data set of every row."""
    return ", ".join(f"{r['reaction']} {r['dataset']}" for r in rows)


def solver_title(solver: str) -> str:
    """The usual name of a solver."""
    return {"euler": "Euler", "rk4": "RK4"}[solver]


# ---------------------------------------------------------------------- study


settings = SHEET.settings


def run(run: StudyRun) -> None:
    """Run the study: errors of every setting as maps, the worst responses, products, verdicts."""
    chosen = run.settings
    modes: list[MutableRow] = []
    for _, result in each_cell(run, (*LINEAR, *CLASSICAL), _modes, "reactions"):
        modes += result
    linear = [s for s in paper_presets() if s.reaction in LINEAR]
    products = run.part("products", lambda: [product_row(s, chosen) for s in linear])
    run.answer(_summary(modes), "errors_worst")
    for name in (*LINEAR, *CLASSICAL):
        run.equation(name)
    run.say("What is compared", SHEET.text("about", chosen=chosen))
    for which in ("worst", "typical"):
        run.figure(f"errors_{which}", error_map(modes, which), _map_caption(chosen, which), map_rows(modes))
    chart, drawn = worst_chart(modes, chosen["points"])
    run.figure("worst", chart, SHEET.text("worst"), drawn)
    run.table("modes", modes, SHEET.text("modes"))
    run.table("products", products, SHEET.text("products"))
    answers = [*solved(modes), *class_changes(modes), inert_steps(modes), product_counts(products, chosen["tolerance"])]
    for statement, answer, evidence in answers:
        run.verdict(statement, answer, evidence)
    run.results(modes)


def _modes(run: StudyRun, reaction: str) -> list[MutableRow]:
    """The errors of all settings of one reaction."""
    group = [s for s in paper_presets() if s.reaction == reaction]
    name = f"modes-{reaction.replace('*', 'star')}"
    return run.part(name, lambda: [row for s in group for row in mode_rows(s, run.settings)])


def _map_caption(chosen: Any, which: str) -> str:
    typical = f"alpha = {chosen['typical_alpha']:g}, beta = {chosen['typical_beta']:g}"
    coefficients = typical if which == "typical" else "the worst coefficients that the setting can reach"
    return SHEET.text("map", coefficients=coefficients, solved=SOLVED)


def _summary(modes: Sequence[MutableRow]) -> str:
    linear = [r for r in modes if r["reaction"] in LINEAR]
    median = {s: np.median([float(r["error_typical"]) for r in linear if r["solver"] == s]) for s in ("euler", "rk4")}
    worst = max(linear, key=lambda r: float(r["error_worst"]))
    return SHEET.text(
        "summary", median=median, error=float(worst["error_worst"]), where=setting_names([worst]),
        solver=solver_title(str(worst["solver"])), alpha=float(worst["alpha_worst"]), beta=float(worst["beta_worst"]),
    )  # fmt: skip

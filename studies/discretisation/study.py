"""The paper's best settings: is the thing computed still the equation?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from studies.discretisation.figures import WORST_CAPTION, error_map, map_rows, worst_figure
from studies.discretisation.rows import CLASSICAL, LINEAR, mode_rows, product_row
from studies.discretisation.verdicts import (
    inert_steps,
    kept_classes,
    product_counts,
    setting_names,
    solved,
    solver_title,
)
from studies.runs.cell_work import each_cell
from studies.runs.published_settings import best_settings
from studies.runs.tables import MutableRow

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

MODES_CAPTION = (
    "Every published setting. form: the linear equation compared (F, AC, Z near a state at rest); error: largest "
    "difference of computed and exact gain over λ in [0, 2], over the largest exact gain, at typical and at the worst "
    "coefficients the setting can reach; amplified, damped, flipped: largest share of λ in [0, 2] that the solver "
    "amplifies though the flow damps it, damps though it is amplified, and gives the wrong sign."
)
PRODUCTS_CAPTION = (
    "Sparse products of the published solver, and of the exact method to the tolerance of the settings at typical and "
    "over all coefficients the setting can reach: a Chebyshev series for OA, a power series for SA."
)


def settings(small: bool) -> dict[str, Any]:
    """Coefficients: the paper trains them and prints none; alpha is a sigmoid, beta too where it is a scalar."""
    return {
        "points": 201 if small else 2001,
        "typical_alpha": 0.7,
        "typical_beta": 0.4,
        "alphas": [0.1, 0.5, 1.0],
        "betas": [-1.0, -0.5, 0.5, 1.0],
        "tolerance": 1e-6,
    }


def run(run: StudyRun) -> None:
    """Errors of every setting, a map of them, the worst responses, products, verdicts."""
    chosen = run.settings
    modes: list[MutableRow] = []
    for _, found in each_cell(run, (*LINEAR, *CLASSICAL), _modes, "reactions"):
        modes += found
    linear = [s for s in best_settings() if s.reaction in LINEAR]
    products = run.part("products", lambda: [product_row(s, chosen) for s in linear])
    run.answer(_summary(modes), "errors")
    for name in (*LINEAR, *CLASSICAL):
        run.equation(name)
    run.say("What is compared", _about(chosen))
    run.figure("errors", error_map(modes), _map_caption(chosen), map_rows(modes))
    figure, drawn = worst_figure(modes, chosen["points"])
    run.figure("worst", figure, WORST_CAPTION, drawn)
    run.table("modes", modes, MODES_CAPTION)
    run.table("products", products, PRODUCTS_CAPTION)
    answers = [*solved(modes), *kept_classes(modes), inert_steps(modes), product_counts(products, chosen["tolerance"])]
    for statement, answer, evidence in answers:
        run.verdict(statement, answer, evidence)
    run.results(modes)


def _modes(run: StudyRun, reaction: str) -> list[MutableRow]:
    """The errors of all settings of one reaction."""
    own = [s for s in best_settings() if s.reaction == reaction]
    name = f"modes-{reaction.replace('*', 'star')}"
    return run.part(name, lambda: [row for s in own for row in mode_rows(s, run.settings)])


def _about(chosen: Any) -> str:
    return (
        "On an eigenvector of L with eigenvalue λ a linear equation multiplies by its gain, known in closed form for "
        "the flow and for every Runge-Kutta method; both are compared over λ in [0, 2], which holds for symmetric and "
        "row-normalised graphs. F, AC and Z are linearised at their states at rest. The paper prints time, step and "
        f"solver; alpha and beta are trained and not printed. Typical means alpha = {chosen['typical_alpha']:g}, beta "
        f"= {chosen['typical_beta']:g}; worst is taken over alpha in {chosen['alphas']} and beta in {chosen['betas']}, "
        "without the negative ones where beta is a scalar, which passes a sigmoid in the authors' code."
    )


def _map_caption(chosen: Any) -> str:
    return (
        "Largest difference between computed and exact gain over λ in [0, 2], over the largest exact gain. Typical: "
        f"alpha = {chosen['typical_alpha']:g}, beta = {chosen['typical_beta']:g}; worst: over the coefficients a "
        "setting can reach. Time, step and solver as published."
    )


def _summary(modes: Sequence[MutableRow]) -> str:
    linear = [r for r in modes if r["reaction"] in LINEAR]
    median = {s: np.median([float(r["error_typical"]) for r in linear if r["solver"] == s]) for s in ("euler", "rk4")}
    worst = max(linear, key=lambda r: float(r["error_worst"]))
    return (
        f"At typical coefficients the median error is {median['rk4']:.1g} with RK4 and {median['euler']:.1g} with "
        "Euler: the RK4 settings compute the equation, the Euler settings compute a discrete filter of their own. The "
        f"largest error is {float(worst['error_worst']):.2g}, for {setting_names([worst])} "
        f"({solver_title(str(worst['solver']))}, alpha = {float(worst['alpha_worst']):g}, beta = "
        f"{float(worst['beta_worst']):g})."
    )

"""Filter responses of the linear systems at the paper's settings: the flow, Euler's method and RK4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.response.figures import draw_others, file_name, settings_caption, settings_chart, settings_figure
from studies.response.rows import FORMS, comparison_rows, curve_rows, setting_curves
from studies.response.verdicts import judge
from studies.runs.published_settings import best_settings
from studies.runs.study_run import StudyRun

AMPLIFIED_CAPTION = (
    "Settings for which some frequency in [0, 2] is damped by the flow and amplified by Euler's method at the "
    "published step. solver: the one the paper used there. euler width: length of the set of such λ; from, to: its "
    "ends; at: the λ where Euler's gain is largest in it, with the gains of flow, Euler and RK4. rk4 width: the same "
    "set for RK4. The errors are the largest over λ in [0, 2], relative to the largest gain of the flow."
)


def settings(small: bool) -> dict[str, Any]:
    """Data sets, and coefficients: the paper trains alpha and beta and does not print them."""
    every = list(dict.fromkeys(s.dataset for s in best_settings()))
    return {
        "datasets": ["chameleon", "cora"] if small else every,
        "points": 201 if small else 801,
        "alpha": 0.5,
        "beta": 1.0,
        "betas": [-1.0, -0.5, 0.5, 1.0],
        "others_drawn_at": ["BS", "cora"],
    }


def run(run: StudyRun) -> None:
    """One figure a system with a panel per data set, one of the others, the table of false amplification."""
    chosen = run.settings
    published = [s for s in best_settings() if s.reaction in FORMS and s.dataset in chosen["datasets"]]
    found = run.part("comparison", lambda: comparison_rows(run, published))
    run.answer(_answer(found))
    for name in dict.fromkeys(name for names in FORMS.values() for name in names):
        run.equation(name)
    run.say("What is drawn", _about(chosen))
    for reaction, names in FORMS.items():
        own = [s for s in published if s.reaction == reaction]
        for name in names:
            curves = [setting_curves(name, s, chosen["beta"], chosen) for s in own]
            figure = settings_figure(own, curves)
            chart = settings_chart(own, curves)
            run.figure(file_name(name), figure, settings_caption(name, chosen), curve_rows(own, curves), chart)
    draw_others(run)
    wrong = [row for row in found if float(row["euler_width"]) > 0]
    run.say("Where Euler's method amplifies what the flow damps", _summary(found))
    run.table("amplified", wrong, AMPLIFIED_CAPTION)
    judge(run, found)
    run.results(found)


# ---------------------------------------------------------------------- words
def _about(chosen: Mapping[str, Any]) -> str:
    return f"""
    A linear system multiplies the frequency λ of L, an eigenvalue in [0, 2], by a gain. The flow's gain is
    exp(T p(λ)), plus a term for a source; a method with step τ multiplies by its stability polynomial at τ p(λ) in
    every step, the last one shortened. T, τ and the solver are the best settings of the paper's appendix for each
    reaction and data set.

    The paper trains α and β and prints no values. In the released code a scalar starts at 0.5 and the entries of a
    vector β start between -1 and 1, so the curves use α = {chosen["alpha"]:g} with β = {chosen["beta"]:g}, and the
    table β = {", ".join(f"{b:g}" for b in chosen["betas"])}. FB and FB* are shown as printed and as released.
    """


def _answer(found: Sequence[Mapping[str, Any]]) -> str:
    wrong, rk4 = (sum(row[name] > 0 for row in found) for name in ("euler_width", "rk4_width"))
    return (
        f"In {wrong} of {len(found)} cases (system, data set, β) Euler's method at the published step amplifies a "
        f"frequency that the flow damps; RK4 does so in {rk4}."
    )


def _summary(found: Sequence[Mapping[str, Any]]) -> str:
    wrong = [row for row in found if row["euler_width"] > 0]
    used = [row for row in wrong if row["solver"] == "euler"]
    worst = max(used, key=lambda row: row["euler_gain"], default=None)
    text = f"In {len(used)} of the {len(wrong)} cases Euler's method is the solver the paper used."
    if worst is not None:
        text += f"""
    The largest such gain where Euler was used: {worst["system"]} on {worst["dataset"]} with τ = {worst["step"]:g} and
    β = {worst["beta"]:g} multiplies λ = {worst["at"]:.3g} by {worst["euler_gain"]:.3g}, where the flow multiplies by
    {worst["flow_gain"]:.2g}.
    """
    return text

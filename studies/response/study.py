"""Filter responses of the linear systems at the paper's settings: the flow, Euler's method and RK4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.gain_curves import GAIN_RANGE, ResponseCurve, response_curves, response_figure
from gread.settings.presets import Preset, paper_presets
from rdgraph.systems.catalogue import catalogue
from studies.runs.chart import Chart, Line, Panel
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, Value
from studies.runs.word_sheets import WordSheet

# ---------------------------------------------------------------------- rows
# Responses of the flow, of Euler's method and of RK4 at published settings, and where they differ, as rows.

SHEET = WordSheet("response")
#: Systems that share the settings of a published reaction: the paper's form and the form its authors released.
FORMS = {"BS": ("BS",), "ST": ("ST",), "FB": ("FB", "FB-released"), "FB*": ("FB*", "FB*-released")}
#: Gains this close to one count as one.
TOLERANCE = 1e-9


def setting_curves(name: str, setting: Preset, beta: float, chosen: Mapping[str, Any]) -> list[ResponseCurve]:
    """Flow, Euler and RK4 at the end time and step of a published setting."""
    step = setting.config.gread.step
    return response_curves(
        catalogue[name],
        T=setting.config.gread.time,
        values={"alpha": chosen["alpha"], "beta": beta},
        methods=(("exact", None), ("euler", step), ("rk4", step)),
        points=chosen["points"],
    )


def comparison_rows(run: StudyRun, published: Sequence[Preset]) -> list[Row]:
    """One row per system, published setting and beta: where a method amplifies what the flow damps."""
    chosen = run.settings
    cases = [(name, s, beta) for s in published for name in FORMS[s.reaction] for beta in chosen["betas"]]
    return [
        compare(name, s, chosen["alpha"], beta, setting_curves(name, s, beta, chosen))
        for name, s, beta in run.progress(cases, "comparing responses")
    ]


def compare(name: str, setting: Preset, alpha: float, beta: float, curves: Sequence[ResponseCurve]) -> Row:
    """Where Euler and RK4 have |gain| > 1 though the flow has |gain| < 1, and how far they are from the flow."""
    flow, euler, rk4 = (np.abs(curve.gain) for curve in curves)
    lam = curves[0].lam
    false = is_false_gain(flow, euler)
    at = int(np.argmax(np.where(false, euler, -np.inf)))
    row: dict[str, Value] = {
        "system": name,
        "dataset": setting.dataset,
        "solver": setting.config.gread.method,
        "step": float(setting.config.gread.step or 0),
        "time": setting.config.gread.time,
        "alpha": alpha,
        "beta": beta,
        "euler_width": float(2 * false.mean()),
        "rk4_width": float(2 * is_false_gain(flow, rk4).mean()),
        "from": float(lam[false].min()) if false.any() else np.nan,
        "to": float(lam[false].max()) if false.any() else np.nan,
        "at": float(lam[at]) if false.any() else np.nan,
    }
    for method, gain in (("flow", flow), ("euler", euler), ("rk4", rk4)):
        row[f"{method}_gain"] = float(gain[at]) if false.any() else np.nan
    scale = flow.max()
    row["euler_error"] = float(np.abs(curves[1].gain - curves[0].gain).max() / scale)
    row["rk4_error"] = float(np.abs(curves[2].gain - curves[0].gain).max() / scale)
    return row


def is_false_gain(flow: np.ndarray, method: np.ndarray) -> np.ndarray:
    """Where a method amplifies what the flow damps; absolute gains.

    >>> is_false_gain(np.array([0.5, 0.5, 2.0]), np.array([1.5, 0.2, 3.0])).tolist()
    [True, False, False]
    """
    return (flow < 1 - TOLERANCE) & (method > 1 + TOLERANCE)


def curve_rows(ours: Sequence[Preset], curves: Sequence[Sequence[ResponseCurve]]) -> list[Row]:
    """The numbers drawn in a figure, one row a point."""
    return [
        {
            "system": curve.system,
            "dataset": setting.dataset,
            "time": setting.config.gread.time,
            "step": float(setting.config.gread.step or 0),
            "method": curve.method,
            "lam": round(float(lam), 6),
            "gain": float(f"{gain:.9g}"),
        }
        for setting, group in zip(ours, curves, strict=True)
        for curve in group
        for lam, gain in zip(curve.lam, curve.gain, strict=True)
    ]


# ---------------------------------------------------------------------- figures
# Figures of responses: one panel a data set, and one of the systems that have no published settings.

#: What methods are called in a legend, and how many points a curve has.
TITLES, POINTS = {"exact": "flow", "euler": "Euler", "rk4": "RK4"}, 100


def settings_chart(ours: Sequence[Preset], curves: Sequence[Sequence[ResponseCurve]]) -> Chart:
    """One panel a data set; gains beyond the range of all panels are left out."""
    low, high = _limits(curves)
    panels = []
    for setting, group in zip(ours, curves, strict=True):
        lines = []
        for k, curve in enumerate(group):
            stride = max(1, len(curve.lam) // POINTS)
            gain = np.abs(curve.gain[::stride])
            stored = np.where((gain >= low) & (gain <= high), gain, np.nan)
            lines.append(Line(TITLES[curve.method], curve.lam[::stride], stored, look=8 * k))
        model = setting.config.gread
        title = f"{setting.dataset}: {model.method}, T = {model.time:g}, τ = {model.step:g}"
        panels.append(Panel(title, lines, {"unchanged": 1.0}))
    return Chart(panels, "λ, eigenvalue of L", "|gain|", y_scale="log", is_shared=True)


def _limits(curves: Sequence[Sequence[ResponseCurve]]) -> tuple[float, float]:
    """A range of gains for all panels: what the curves need within GAIN_RANGE, and a decade around one at least."""
    flows = np.abs([curve.gain for group in curves for curve in group])
    return max(GAIN_RANGE[0], min(0.3, flows.min() / 2)), min(GAIN_RANGE[1], max(3.0, flows.max() * 2))


def draw_others(run: StudyRun) -> None:
    """Linear systems of the catalogue in alpha and beta that the paper has no settings for, at one published one."""
    chosen = run.settings
    reaction, dataset = chosen["others_drawn_at"]
    setting = next(s for s in paper_presets() if (s.reaction, s.dataset) == (reaction, dataset))
    model = setting.config.gread
    covered = {name for names in FORMS.values() for name in names}
    known = {"alpha", "beta"}  # what a setting has values for
    others = [
        s for n, s in catalogue.single.items() if n not in covered and s.has_response and set(s.coefficients) <= known
    ]
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    methods = (("exact", None), ("euler", model.step), ("rk4", model.step))
    figure, curves = response_figure(others, T=model.time, values=numbers, methods=methods)
    rows = curve_rows([setting], [curves])
    run.figure("others", figure, SHEET.text("others", reaction=reaction, dataset=dataset, model=model), rows)


def file_name(name: str) -> str:
    """The name of a system as that of a file."""
    return name.replace("*", "star")


# ---------------------------------------------------------------------- verdicts
# Does the paper's solver damp every frequency that the flow damps?


def judge(run: StudyRun, result: Sequence[Mapping[str, Any]]) -> None:
    """Add a verdict for each solver: does it damp every frequency that the flow damps, where the paper uses it?"""
    euler = [row for row in result if row["solver"] == "euler"]
    rk4 = [row for row in result if row["solver"] == "rk4"]
    for used, name in ((euler, "Euler's method"), (rk4, "RK4")):
        wrong = [row for row in used if row[f"{used[0]['solver']}_width"] > 0]
        places = sorted({f"{row['system']} on {row['dataset']}" for row in wrong})
        betas = ", ".join(f"{b:g}" for b in run.settings["betas"])
        run.verdict(*SHEET.verdict(
            "damps", "fails" if wrong else "holds", name=name, cases=len(used), betas=betas, wrong=len(wrong),
            places=f": {', '.join(places)}." if places else ".",
        ))  # fmt: skip


# ---------------------------------------------------------------------- study


settings = SHEET.settings


def run(run: StudyRun) -> None:
    """One figure a system with a panel per data set, one of the others, the table of false amplification."""
    chosen = run.settings
    published = [s for s in paper_presets() if s.reaction in FORMS and s.dataset in chosen["datasets"]]
    result = run.part("comparison", lambda: comparison_rows(run, published))
    run.answer(_answer(result))
    for name in dict.fromkeys(name for names in FORMS.values() for name in names):
        run.equation(name)
    run.say("What is drawn", _about(chosen))
    for reaction, names in FORMS.items():
        ours = [s for s in published if s.reaction == reaction]
        for name in names:
            curves = [setting_curves(name, s, chosen["beta"], chosen) for s in ours]
            chart = settings_chart(ours, curves)
            caption = SHEET.text("system", name=name, system=catalogue[name], chosen=chosen)
            run.figure(file_name(name), chart, caption, curve_rows(ours, curves))
    draw_others(run)
    wrong = [row for row in result if float(row["euler_width"]) > 0]
    run.say("Where Euler's method amplifies what the flow damps", _summary(result))
    run.table("amplified", wrong, SHEET.text("amplified"))
    judge(run, result)
    run.results(result)


# ---------------------------------------------------------------------- words
def _about(chosen: Mapping[str, Any]) -> str:
    return SHEET.text("about", chosen=chosen, betas=", ".join(f"{b:g}" for b in chosen["betas"]))


def _answer(result: Sequence[Mapping[str, Any]]) -> str:
    wrong, rk4 = (sum(row[name] > 0 for row in result) for name in ("euler_width", "rk4_width"))
    return SHEET.text("answer", wrong=wrong, cases=len(result), rk4=rk4)


def _summary(result: Sequence[Mapping[str, Any]]) -> str:
    wrong = [row for row in result if row["euler_width"] > 0]
    used = [row for row in wrong if row["solver"] == "euler"]
    worst = max(used, key=lambda row: row["euler_gain"], default=None)
    text = SHEET.text("used", used=len(used), wrong=len(wrong))
    if worst is not None:
        text += " " + SHEET.text("worst", worst=worst)
    return text

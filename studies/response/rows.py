"""Responses of the flow, of Euler's method and of RK4 at published settings, and where they differ, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.responses import ResponseCurve, response_curves
from rdgraph.systems.catalogue import catalogue
from studies.runs.published_settings import PublishedSetting
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, Value

#: Systems that share the settings of a published reaction: the paper's form and the form its authors released.
FORMS = {"BS": ("BS",), "ST": ("ST",), "FB": ("FB", "FB-released"), "FB*": ("FB*", "FB*-released")}
#: Gains this close to one count as one.
TOLERANCE = 1e-9


def setting_curves(name: str, setting: PublishedSetting, beta: float, chosen: Mapping[str, Any]) -> list[ResponseCurve]:
    """Flow, Euler and RK4 at the end time and step of a published setting."""
    return response_curves(
        catalogue[name],
        T=setting.time,
        coefficients={"alpha": chosen["alpha"], "beta": beta},
        methods=(("exact", None), ("euler", setting.step), ("rk4", setting.step)),
        points=chosen["points"],
    )


def comparison_rows(run: StudyRun, published: Sequence[PublishedSetting]) -> list[Row]:
    chosen = run.settings
    cases = [(name, s, beta) for s in published for name in FORMS[s.reaction] for beta in chosen["betas"]]
    return [
        compare(name, s, chosen["alpha"], beta, setting_curves(name, s, beta, chosen))
        for name, s, beta in run.progress(cases, "comparing responses")
    ]


def compare(name: str, setting: PublishedSetting, alpha: float, beta: float, curves: Sequence[ResponseCurve]) -> Row:
    """Where Euler and RK4 have |gain| > 1 though the flow has |gain| < 1, and how far they are from the flow."""
    flow, euler, rk4 = (np.abs(curve.gain) for curve in curves)
    lam = curves[0].lam
    false = is_false_gain(flow, euler)
    at = int(np.argmax(np.where(false, euler, -np.inf)))
    row: dict[str, Value] = {
        "system": name,
        "dataset": setting.dataset,
        "solver": setting.solver,
        "step": setting.step,
        "time": setting.time,
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


def curve_rows(own: Sequence[PublishedSetting], curves: Sequence[Sequence[ResponseCurve]]) -> list[Row]:
    return [
        {
            "system": curve.system,
            "dataset": setting.dataset,
            "time": setting.time,
            "step": setting.step,
            "method": curve.method,
            "lam": round(float(lam), 6),
            "gain": float(f"{gain:.9g}"),
        }
        for setting, group in zip(own, curves, strict=True)
        for curve in group
        for lam, gain in zip(curve.lam, curve.gain, strict=True)
    ]

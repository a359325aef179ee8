"""Pictures of a formula: the learned function with its spread beside it, and error against size."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.figures import PALETTE, plain
from gread.formulas.learned_curves import LearnedCurves
from rdgraph.distillation.found_formula import FormulaSearch, draw_front
from studies.training.figures import Drawing, empty_figure


def formula_figure(curves: LearnedCurves, search: FormulaSearch) -> Drawing:
    """The function of every trial thin, its spread shaded, the formula over it; beside it the front."""
    figure = empty_figure(10.4, 4.2)
    left, right = figure.subplots(1, 2)
    x, mean, spread = curves.x, curves.y.mean(0), curves.y.std(0)
    left.axhline(0, color="0.85", lw=0.8)
    left.plot(x, curves.y.T, color=PALETTE[0], lw=0.6, alpha=0.4)
    left.fill_between(x, mean - spread, mean + spread, color=PALETTE[0], alpha=0.2, lw=0)
    left.plot(x, mean, color=PALETTE[0], lw=2.2, label=f"{plain(curves.name)}, mean")
    rows: list[dict[str, Any]] = [
        {"x": float(a), "mean": float(b), "std": float(c)} for a, b, c in zip(x, mean, spread, strict=True)
    ]
    if search.formula is not None:
        made = np.atleast_2d(search.formula(x)).mean(0)
        left.plot(x, made, color=PALETTE[1], lw=1.8, ls="--", label=search.formula.text)
        rows = [{**row, "formula": float(value)} for row, value in zip(rows, made, strict=True)]
    left.set(xlabel="entry of the state", ylabel=plain(curves.name))
    left.legend(fontsize=8)
    draw_front(right, search)
    count = len(curves.y)
    trials = f"of {count} trials (thin), their mean (thick) and one standard deviation (shaded)" if count > 1 else ""
    caption = (
        f"Left: the function {trials} where the states lie; dashed, the formula, with the mean of its values. Right: "
        "the smallest error of a formula of every size, relative; the full dot is the one that was chosen."
    )
    return Drawing("formula", figure, " ".join(caption.split()), rows)

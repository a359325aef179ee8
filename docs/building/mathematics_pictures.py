"""A picture for each page of mathematics that gains by one, drawn when the site is built and put before its method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib
import matplotlib.lines
import matplotlib.patches
import numpy as np
import sympy as sp
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx.application import Sphinx

import analysis
import rdgraph as rd
from analysis.figure_files import PALETTE
from docs.building.gallery_pictures import STYLE
from rdgraph.vocabulary.methods import tableau

#: Pictures below the pages of the site, as Sphinx sees them.
PICTURES = "generated/mathematics"
#: Grey for words and axes: legible on white and on black paper.
INK = "#7a828b"
BLUE, RED, GREEN = PALETTE[:3]
LAM = np.linspace(0.0, 2.0, 201)


def symbol(axes: Axes) -> str:
    for method, step, dash in (("exact", None, "-"), ("rk4", 1.0, "--"), ("euler", 1.0, ":")):
        gain = analysis.gain_at("BS", LAM, T=4, values={"alpha": 0.5, "beta": 1.0}, method=method, step=step)
        axes.plot(LAM, gain, dash, label=method if step is None else f"{method}, step {step:g}")
    axes.set(xlabel="λ", ylabel="gain g(λ) at T = 4", ylim=(-1, 4))
    axes.legend()
    return "The response of blurring-sharpening with α = 0.5, β = 1: the exact flow, and two methods with step 1."


def filters(axes: Axes) -> str:
    for beta, kind in ((0.2, "low-pass"), (1.5, "band-pass")):
        gain = analysis.gain_at("BS", LAM, T=2, values={"alpha": 0.5, "beta": beta})
        axes.plot(LAM, gain, label=f"BS, β = {beta}: {kind}")
    high = analysis.gain_at("-alpha*L@H + beta*L@H", LAM, T=2, values={"alpha": 0.5, "beta": 0.8})
    axes.plot(LAM, high, label="(β - α) L H, β = 0.8: high-pass")
    axes.set(xlabel="λ", ylabel="gain at T = 2")
    axes.legend()
    return "Gains of three flows with α = 0.5."


def exact_flow(axes: Axes) -> str:
    degrees = np.arange(1, 21)
    points = np.cos(np.linspace(0, np.pi, 400))
    for t, colour in ((1.0, BLUE), (4.0, RED)):
        gain = np.exp(t * (points - 1))
        series = np.polynomial.Chebyshev.interpolate(lambda a, t=t: np.exp(t * (a - 1)), 60)
        errors = [np.abs(series.truncate(degree + 1)(points) - gain).max() for degree in degrees]
        rho = np.linspace(1.05, 40, 400)[:, None]
        bound = (2 * np.exp(t * ((rho + 1 / rho) / 2 - 1)) * rho**-degrees / (rho - 1)).min(0)
        axes.semilogy(degrees, errors, "o", color=colour, markersize=4, label=f"error, t = {t:g}")
        axes.semilogy(degrees, bound, color=colour, label=f"the bound at the best ρ, t = {t:g}")
    axes.set(xlabel="degree N, the number of products with A", ylabel="largest error on [-1, 1]", ylim=(1e-16, 10))
    axes.legend()
    return "Diffusion for a time t: the error of the polynomial falls faster than any power of ρ."


def lipschitz(axes: Axes) -> str:
    axes.plot(LAM, -LAM, color=BLUE, label="p(λ) = -αλ")
    axes.fill_between(LAM, -LAM - 2, -LAM + 1, color=BLUE, alpha=0.2, label="p(λ) + r'(h), |h| ≤ 1")
    axes.plot([0], [1], "o", color=RED, label="one-sided constant: β = 1")
    axes.plot([2], [-4], "s", color=RED, label="local constant: 2α + 2β = 4")
    axes.set(xlabel="λ", ylabel="slope")
    axes.legend()
    return "Allen-Cahn with α = β = 1 on |h| ≤ 1: all slopes of the right-hand side, and the two that count."


def existence(axes: Axes) -> str:
    t = np.linspace(0.0, 3.2, 600)
    for start in (2.0, 0.5, 0.05, -0.05, -0.2, -0.5):
        with np.errstate(divide="ignore"):
            end = np.log(1 - 1 / start) if start < 0 else np.inf
        h = start * np.exp(t) / (1 + start * (np.exp(t) - 1))
        axes.plot(t, np.where(t < end, h, np.nan), color=RED if start < 0 else BLUE)
        if end < t[-1]:
            axes.axvline(end, color=RED, linestyle=":", linewidth=1)
    axes.set(xlabel="t", ylabel="h", ylim=(-4, 2.2))
    return "h' = h (1 - h): solutions from h0 > 0 (blue) tend to 1; from h0 < 0 (red) they blow up at log(1 - 1/h0)."


def boxes(axes: Axes) -> str:
    u, v = np.meshgrid(np.linspace(-0.15, 1.25, 15), np.linspace(-0.15, 1.25, 15))
    du, dv = u * (1 - u - 0.6 * v), v * (1 - v - 0.6 * u)
    size = np.hypot(du, dv) ** 0.6 + 1e-9
    axes.quiver(u, v, du / size, dv / size, color=INK, angles="xy", width=0.0035)
    axes.add_patch(matplotlib.patches.Rectangle((0, 0), 1, 1, fill=False, edgecolor=BLUE, linewidth=2))
    axes.set(xlabel="u", ylabel="v", aspect="equal")
    return "Two competing species, a = b = 0.6: on no face of the box [0, 1] × [0, 1] does the reaction point outwards."


def step_limits(axes: Axes) -> str:
    x, y = np.meshgrid(np.linspace(-4.2, 1, 300), np.linspace(-3.4, 3.4, 300))
    handles = []
    for method, colour in (("euler", BLUE), ("heun", RED), ("rk4", GREEN)):
        stability = tableau(method).stability
        size = np.abs(sp.lambdify(sorted(stability.free_symbols, key=str), stability, "numpy")(x + 1j * y))
        axes.contour(x, y, size, levels=[1], colors=[colour])
        handles.append(matplotlib.lines.Line2D([], [], color=colour, label=method))
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.set(xlabel="Re τp", ylabel="Im τp", aspect="equal")
    axes.legend(handles=handles)
    return "Regions |R(z)| ≤ 1: a step is within the limit if τp(λ) lies inside for every damped frequency."


def splitting(axes: Axes) -> str:
    op = rd.generators.ring(30).operator("row", dtype=torch.float64)
    field = rd.lower("AC", op, {"alpha": 1.0, "beta": 2.0})
    start = torch.rand(30, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    exact = rd.solve(field, start, [0.0, 2.0], method="dopri5", rtol=1e-12, atol=1e-14).final
    steps = 2.0 / 2 ** np.arange(1, 7)
    for method in ("strang", "heun", "euler"):
        runs = [rd.solve(field, start, [0.0, 2.0], method=method, step=step).final for step in steps]
        errors = [float((final - exact).abs().max()) for final in runs]
        axes.loglog(steps, errors, "o-", label=method)
    axes.set(xlabel="step τ", ylabel="largest error at t = 2")
    axes.legend()
    return "Allen-Cahn on a ring: Strang's error falls with the square of the step, and no step leaves the box."


def conservation(axes: Axes) -> str:
    for beta in (0.5, 1.5):
        p = (beta - 1) * LAM - beta * LAM**2
        axes.plot(LAM, 2 * LAM * p, label=f"β = {beta}")
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set(xlabel="λ", ylabel="2 λ p(λ)")
    axes.legend()
    return "What a mode of unit size adds to dE/dt, for BS with α = 1: the energy can rise only if β > α."


def patterns(axes: Axes) -> str:
    system = "u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v"
    values = {"a": 2, "b": 3, "Du": 1, "Dv": 12}
    a, b, du, dv = values.values()
    matrices = np.array([[[b - 1 - du * lam, a * a], [-b, -a * a - dv * lam]] for lam in LAM])
    growth = np.linalg.eigvals(matrices).real.max(1)
    (band,) = rd.dispersion(system, values).unstable
    axes.axvspan(float(band.lower), float(band.upper), color=RED, alpha=0.15, label="band that grows, exact ends")
    axes.plot(LAM, growth, color=BLUE, label="growth rate")
    modes = rd.dispersion(system, values, operator=rd.generators.ring(24).operator("row", dtype=torch.float64)).modes
    axes.plot(modes.eigenvalues, modes.growth, "o", mfc="none", color=GREEN, label="modes of a ring of 24 nodes")
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set(xlabel="λ", ylabel="largest Re of P(λ)", ylim=(-1.2, None))
    axes.legend()
    return "The dispersion relation of the Brusselator with a = 2, b = 3, Du = 1, Dv = 12."


def oversmoothing(axes: Axes) -> str:
    star, start = rd.generators.star(6), torch.eye(6, 1, dtype=torch.float64)
    for normalisation in ("row", "symmetric"):
        verdict = analysis.oversmoothing("diffusion", star, {"alpha": 1.0}, start, T=8.0, normalisation=normalisation)
        axes.semilogy(verdict.times, verdict.energies["dirichlet"], label=f"{normalisation}: {verdict.answer}")
    axes.set(xlabel="t", ylabel="Dirichlet energy", ylim=(1e-6, None))
    axes.legend()
    return "The same diffusion on a star of six nodes, with two normalisations of the adjacency."


#: The picture of a page, by the page's name: what draws it, and returns its caption.
DRAWN: dict[str, Callable[[Axes], str]] = {
    draw.__name__: draw
    for draw in (symbol, filters, exact_flow, lipschitz, existence, boxes, step_limits, splitting, conservation,
                 patterns, oversmoothing)
}  # fmt: skip


def picture(name: str, path: Path) -> str:
    """Draw the picture of a page as SVG on transparent paper; returns its caption."""
    grey = dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "text.color"), INK)
    with matplotlib.rc_context():
        matplotlib.rc_file(STYLE)
        matplotlib.rcParams.update({**grey, "svg.hashsalt": name, "legend.frameon": False})
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        caption = DRAWN[name](figure.subplots())
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, format="svg", transparent=True, metadata={"Date": None})
    return caption


def illustrate(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the picture of a page of mathematics, with its caption, before the page's method."""
    folder, _, page = name.rpartition("/")
    if folder == "mathematics" and page in DRAWN:
        caption = picture(page, Path(app.srcdir, PICTURES, f"{page}.svg"))
        shown = f"![{caption}](/{PICTURES}/{page}.svg)\n\n*{caption}*\n\n## Method\n"
        source[0] = source[0].replace("## Method\n", shown, 1)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", illustrate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

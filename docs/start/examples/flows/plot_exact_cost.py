"""
Accuracy per sparse product of exact and stepped solvers
========================================================

On large graphs the sparse product is what a run costs. A linear flow is a polynomial of the adjacency whose degree is
chosen from a bound of the error, so that it needs fewer products than any method with steps, at any accuracy.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

op = rd.generators.erdos_renyi(300, 0.03, seed=5).operator("symmetric", dtype=torch.float64)
field = rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5})
start = torch.randn(300, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
reference = rd.solve(field, start, [0.0, 4.0], method="exact", rtol=1e-14, atol=1e-15).final


def point(**settings):
    """Products and error of one run."""
    solution = rd.solve(field, start, [0.0, 4.0], **settings)
    return solution.stats.products, float((solution.final - reference).abs().max())


tolerances = [10.0**-k for k in range(2, 12, 2)]
runs = {
    "exact": [point(method="exact", rtol=tol, atol=tol) for tol in tolerances],
    "dopri5": [point(method="dopri5", rtol=tol, atol=tol) for tol in tolerances],
    "rk4": [point(method="rk4", step=4.0 / 2**k) for k in range(3, 8)],
    "heun": [point(method="heun", step=4.0 / 2**k) for k in range(3, 8)],
}
figure = Figure(figsize=(6.5, 4.2), layout="constrained")
panel = figure.subplots()
for (name, points), marker in zip(runs.items(), "o^sD", strict=True):
    panel.loglog(*zip(*points, strict=True), marker=marker, label=name)
panel.set(xlabel="sparse products", ylabel="largest error at t = 4")
panel.legend()

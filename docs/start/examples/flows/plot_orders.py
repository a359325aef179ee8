"""
Convergence orders of solvers
=============================

Halving the step divides the error by two, four or sixteen, as the order of a method says. `strang` alternates the exact
diffusion with the exact reaction, which is known in closed form for Allen-Cahn, and keeps the box for every step.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import rdgraph as rd

op = rd.generators.watts_strogatz(60, 4, 0.2, seed=2).operator("row", dtype=torch.float64)
field = rd.lower("AC", op, {"alpha": 1.0, "beta": 2.0})
start = torch.rand(60, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
exact = rd.solve(field, start, [0.0, 2.0], method="dopri5", rtol=1e-12, atol=1e-14).final
steps = 2.0 / 2 ** np.arange(2, 8)

figure = Figure(figsize=(6.5, 4.2), layout="constrained")
panel = figure.subplots()
for method, marker in zip(["euler", "heun", "strang", "imex", "rk4"], "osD^v", strict=True):
    errors = [
        float((rd.solve(field, start, [0.0, 2.0], method=method, step=step).final - exact).abs().max())
        for step in steps
    ]
    order = np.log2(errors[-3] / errors[-1]) / 2
    panel.loglog(steps, errors, marker=marker, label=f"{method}: order {order:.2f}")
panel.set_xscale("log", base=2)
panel.set(xlabel="step", ylabel="largest error at t = 2")
panel.legend()

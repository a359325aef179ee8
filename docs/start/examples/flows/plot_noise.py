"""
White noise on a graph
======================

With noise in every node the equation u' = -u - L u + sigma xi has a Gaussian law in the end, and every mode its own
variance, sigma² / (2 (1 + λ)). Four hundred paths are followed at once, each with its own seed; the bars are two
standard errors.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import analysis
import rdgraph as rd

sigma, paths = 0.5, 400
op = rd.generators.ring(16).operator("symmetric", dtype=torch.float64)
field = rd.lower("u' = -u - L@u + sigma*xi", op, {"sigma": sigma})
start = torch.zeros(paths, 16, 1, dtype=torch.float64)
solution = rd.solve(field, start, [0.0, 5.0], method="exponential-euler-maruyama", step=0.02, seed=0)
modes = analysis.spectrum(op)
variances = modes.transform(solution.final)[..., 0].var(0).numpy()

lam = np.linspace(0, 2, 200)
figure = Figure(figsize=(6.5, 4), layout="constrained")
panel = figure.subplots()
panel.plot(lam, sigma**2 / (2 * (1 + lam)), color="#0072B2", label="sigma²/(2 (1 + λ))")
panel.errorbar(
    modes.values, variances, 2 * variances * np.sqrt(2 / paths), fmt="o", color="#D55E00", label=f"{paths} paths, t = 5"
)
panel.set(xlabel="λ, eigenvalue of L", ylabel="variance of the mode")
panel.legend()

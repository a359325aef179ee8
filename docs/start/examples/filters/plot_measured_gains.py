"""
Measured gains compared with the symbolic response
==================================================

Every eigenvector of a random graph is sent through the integrator itself, in one batch; what comes out is divided by
what went in. The points are measured, the lines are the formula; no eigenvector leaks into another one.
"""

import torch

import analysis
import rdgraph as rd

op = rd.generators.erdos_renyi(80, 0.08, seed=3).operator("symmetric", self_loops=1.0, dtype=torch.float64)
values = {"alpha": 1.0, "beta": 1.4}
measured = [
    analysis.empirical_gains("BS", op, values, T=2.0, method=method, step=step)
    for method, step in [("exact", None), ("euler", 0.5), ("rk4", 0.5)]
]
figure, rows = analysis.spectra.gains_figure(measured)

# %%
# How far points and lines are apart, over all modes, and how much of a mode is found in others:

for gains in measured:
    print(f"{gains.label:16} error {gains.error.max():.1e}, leak {gains.leak.max():.1e}")

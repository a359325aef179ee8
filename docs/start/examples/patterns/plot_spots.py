"""
Turing spots of the Schnakenberg system
=======================================

Two substances on a torus: Schnakenberg's activator makes more of itself, and its substrate spreads forty times faster.
The state that is the same everywhere is stable without transport and unstable with it, as Turing found in 1952.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

size, times = 80, [0.0, 20.0, 40.0, 120.0]
values = {"a": 0.1, "b": 0.9, "Du": 0.4, "Dv": 16.0}
op = rd.generators.grid(size, size, periodic=True).operator("none", dtype=torch.float64)
field = rd.lower("Schnakenberg", op, values)
noise = 0.01 * torch.randn(size * size, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
solution = rd.solve(field, {"u": 1.0 + noise, "v": 0.9 + 0 * noise}, times, method="rk4", step=0.02)

figure = Figure(figsize=(9, 2.6), layout="constrained")
panels = figure.subplots(1, 4)
for panel, time, state in zip(panels, times, solution["u"], strict=True):
    picture = panel.imshow(state.reshape(size, size).numpy(), vmin=0.0, vmax=float(solution["u"].max()))
    panel.set(title=f"t = {time:g}", xticks=[], yticks=[])
figure.colorbar(picture, ax=panels, shrink=0.8, label="u")  # the picture of the README: figures/pattern.png

# %%
# What is proved of it before anything is run; with L = D - A eigenvalues go up to twice the degree, here 8:

relation = rd.dispersion("Schnakenberg", values, to=8)
print("kind:", relation.kind)
print("growing λ:", *relation.unstable)
ratio = rd.patterns.critical_ratio("Schnakenberg", values).value
print("ratio of diffusivities beyond which there are patterns:", ratio)

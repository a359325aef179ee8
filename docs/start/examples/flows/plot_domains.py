"""
Domains of the Allen-Cahn equation
==================================

From noise, every node of a torus settles near -1 or 1, and then the borders between the domains straighten. The steps
are exact diffusion between two halves of the exact reaction.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

size, times = 48, [0.0, 2.0, 10.0, 40.0]
op = rd.generators.grid(size, size, periodic=True).operator("row", dtype=torch.float64)
field = rd.lower("AC", op, {"alpha": 4.0, "beta": 1.0})
start = 0.2 * torch.randn(size * size, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
solution = rd.solve(field, start, times, method="strang", step=0.25)
print(f"{solution.stats.products} sparse products")

# %%

figure = Figure(figsize=(10, 2.9), layout="constrained")
for panel, time, state in zip(figure.subplots(1, 4), times, solution.states, strict=True):
    panel.imshow(state.reshape(size, size).numpy(), vmin=-1, vmax=1)
    panel.set(title=f"t = {time:g}", xticks=[], yticks=[])

# %%
# Entries that start in [-1, 1] stay there; the method keeps the proved box for every step.

box = rd.invariant_box("AC", "row")
print(f"proved: [{box.lower}, {box.upper}], found: [{solution.final.min():.4f}, {solution.final.max():.4f}]")

"""
Gray-Scott pattern
==================

A square of the second substance eats into the first one, and its border divides again and again. On a torus of 4,096
nodes a run of 3,000 steps takes seconds: steps are compiled to C where there is a compiler.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

size, times = 64, [0.0, 500.0, 1500.0, 3000.0]
values = {"F": 0.037, "k": 0.06, "Du": 0.16, "Dv": 0.08}
op = rd.generators.grid(size, size, periodic=True).operator("none", dtype=torch.float32)
field = rd.lower("Gray-Scott", op, values)
u, v = torch.ones(size, size), torch.zeros(size, size)
u[28:36, 28:36], v[28:36, 28:36] = 0.5, 0.25
start = {"u": u.reshape(-1, 1), "v": v.reshape(-1, 1)}
solution = rd.solve(field, start, times, method="heun", step=1.0)

figure = Figure(figsize=(10, 2.9), layout="constrained")
for panel, time, state in zip(figure.subplots(1, 4), times, solution["v"], strict=True):
    panel.imshow(state.reshape(size, size).numpy(), vmin=0, vmax=0.4)
    panel.set(title=f"v at t = {time:g}", xticks=[], yticks=[])

# %%
# The pattern is far from the steady state; that one is stable, and no small perturbation would have shown it:

for state in rd.steady_states("Gray-Scott", values):
    print(state)
print("kind at the trivial state:", rd.dispersion("Gray-Scott", values, to=8).kind)

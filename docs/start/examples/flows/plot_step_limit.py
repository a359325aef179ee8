"""
Step limit of Euler's method
============================

How long may a step be? For a linear equation the limit is where the first frequency that the flow damps is no longer
damped by the method. One per cent below it Euler's method damps that frequency, one per cent above it does not.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

system = rd.parse("BS")
limits = {method: rd.step_limit(system, method).value for method in ("euler", "heun", "rk4")}
for method, limit in limits.items():
    print(f"{method:6} {limit}")

# %%
# A ring with an even number of nodes has the largest eigenvalue there is, λ = 2, so that the limit is reached:

values = {"alpha": 1.0, "beta": 1.0}
op = rd.generators.ring(20).operator("symmetric", dtype=torch.float64)
field = rd.lower(system, op, values)
start = torch.eye(20, 1, dtype=torch.float64)
top = torch.tensor([1.0, -1.0] * 10, dtype=torch.float64) / 20**0.5
limit = float(limits["euler"].subs(values))
figure = Figure(figsize=(7, 3.8), layout="constrained")
panel = figure.subplots()
for factor, colour in [(0.99, "#0072B2"), (1.0, "#009E73"), (1.01, "#D55E00")]:
    step = factor * limit
    times = [k * step for k in range(301)]
    states = rd.solve(field, start, times, method="euler", step=step).states
    panel.plot(times, (states[..., 0] @ top).abs(), color=colour, label=f"step = {factor:g} of the limit {limit:g}")
panel.set(xlabel="t", ylabel="size of the mode λ = 2", yscale="log")
panel.legend(fontsize=8)

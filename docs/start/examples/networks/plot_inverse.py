"""
Fit coefficients to observed states
===================================

Gradients go through the integrator, so that coefficients can be learned from states. A diffusion with an unknown
reaction is observed at five times; alpha and beta are found by Adam from far away. Before that, the equation says what
can be found at all.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

system = rd.parse("-alpha*L@H + beta*H*(1 - H)")
print("determined by the flow:", rd.theory.identify(system).combinations)

# %%

op = rd.generators.watts_strogatz(40, 4, 0.1, seed=0).operator("row", dtype=torch.float64)
start = torch.rand(40, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
times, truth = [0.0, 0.5, 1.0, 1.5, 2.0], {"alpha": 0.8, "beta": 1.5}
seen = rd.solve(rd.lower(system, op, truth), start, times, method="rk4", step=0.1).states

logs = torch.nn.Parameter(torch.log(torch.tensor([0.1, 0.2], dtype=torch.float64)))
optimiser, path = torch.optim.Adam([logs], lr=0.1), []
for _ in range(80):
    alpha, beta = logs.exp()
    field = rd.lower(system, op, {"alpha": alpha, "beta": beta})
    loss = (rd.solve(field, start, times, method="rk4", step=0.25).states - seen).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    path.append((alpha.item(), beta.item(), loss.item()))

figure = Figure(figsize=(8.5, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
for values, name, colour in zip(list(zip(*path, strict=True))[:2], truth, ("#0072B2", "#D55E00"), strict=True):
    left.plot(values, color=colour, label=name)
    left.axhline(truth[name], color=colour, ls=":")
left.set(xlabel="step of Adam", ylabel="coefficient")
left.legend()
right.semilogy([loss for *_, loss in path], color="black")
right.set(xlabel="step of Adam", ylabel="mean squared error")

# %%

print(f"found alpha = {path[-1][0]:.3f}, beta = {path[-1][1]:.3f}; true are {truth['alpha']} and {truth['beta']}")

"""
A learned reaction function
===========================

The reaction of an equation is left open, as ``phi(H)``, and learned from states: a natural cubic spline, odd by
declaration, whose slopes cannot exceed 4. What made the states is Allen and Cahn's reaction. Grey is where the states
lie; outside of it nothing pulls at the curve.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import rdgraph as rd
from rdgraph.run.lowering.splines import make_controls, start_parameters

system = rd.parse("-0.5*L@H + phi(H) where phi learned knots=12 range=-1.5:1.5 odd lipschitz=4")
print(
    "before anything is learned:", rd.existence(system).outcome, "solutions, steps below", rd.step_limit(system).value
)

# %%

op = rd.generators.watts_strogatz(40, 4, 0.1, seed=0).operator("row", dtype=torch.float64)
start = 1.2 * torch.rand(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.6
times = torch.linspace(0.0, 2.0, 5)
truth = rd.lower("-0.5*L@H + beta*H*(1 - H**2)", op, {"beta": 1.5})
seen = rd.solve(truth, start, times, method="rk4", step=0.05).states

phi = system.learned["phi"]
theta = torch.nn.Parameter(torch.tensor(start_parameters(phi)))
optimiser = torch.optim.Adam([theta], lr=0.2)
for _ in range(40):
    field = rd.lower(system, op, {"phi": make_controls(phi, theta)})
    loss = (rd.solve(field, start, times, method="rk4", step=0.5).states - seen).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

found = rd.vocabulary.LearnedValues(phi, make_controls(phi, theta).detach().numpy())
x = np.linspace(-1.5, 1.5, 201)
figure = Figure(figsize=(6.4, 4.0), layout="constrained")
panel = figure.subplots()
behind = panel.twinx()
behind.hist(seen.numpy().ravel(), bins=60, color="0.88")
behind.set(yticks=[])
panel.set_zorder(behind.get_zorder() + 1)
panel.patch.set_visible(False)
panel.plot(x, 1.5 * x * (1 - x**2), color="black", ls=":", label="what made the states")
panel.plot(x, found(x), color="#D55E00", lw=2, label="learned")
panel.plot(found.knots, found(found.knots), "o", color="#D55E00", ms=4)
panel.set(xlabel="entry of the state", ylabel="phi")
panel.legend()

# %%

inside = x[abs(x) < 0.9]
print(f"largest error for |x| < 0.9: {np.abs(found(inside) - 1.5 * inside * (1 - inside**2)).max():.3f}")

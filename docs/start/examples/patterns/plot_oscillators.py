"""
Coupled oscillators on a ring (GraphCON)
========================================

Graph-coupled oscillators, H'' = A H - gamma H - alpha H', after Rusch et al. (ICML 2022). With little damping a push
travels along a ring; with much damping it only spreads. The two modes of every frequency are the eigenvalues of a 2 x 2
matrix.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

system = rd.parse("H'' = A@H - gamma*H - alpha*H'")
print(system.symbol())

# %%

nodes, times = 80, torch.linspace(0.0, 60.0, 241)
op = rd.generators.ring(nodes).operator("row", dtype=torch.float64)
push = torch.exp(-((torch.arange(nodes, dtype=torch.float64) - 40) ** 2) / 8)[:, None]
figure = Figure(figsize=(9, 3.4), layout="constrained")
for panel, damping in zip(figure.subplots(1, 2), (0.02, 2.0), strict=True):
    field = rd.lower(system, op, {"gamma": 1.0, "alpha": damping})
    solution = rd.solve(field, {"H": push}, times.tolist())
    picture = panel.imshow(
        solution["H"][..., 0].numpy(),
        aspect="auto",
        origin="lower",
        extent=(0, nodes, 0, 60),
        cmap="viridis",
        vmin=-1,
        vmax=1,
    )
    panel.set(title=f"alpha = {damping:g}", xlabel="node", ylabel="t")
figure.colorbar(picture, label="H")

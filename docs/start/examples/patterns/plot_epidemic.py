"""
An epidemic on a small world
============================

Susceptible, infected, removed: three fields, of which infection passes along edges. Their sum is the same in every node
at all times, which is proved from the equations, and the integrator keeps it to rounding.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

sir = rd.catalogue["SIR"]
print(sir)
print("conserved:", *rd.theory.conserved(sir).sums)

# %%

nodes, times = 400, torch.linspace(0.0, 60.0, 121).tolist()
figure = Figure(figsize=(9, 3.4), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
for panel, shortcut in zip(panels, (0.0, 0.1), strict=True):
    op = rd.generators.watts_strogatz(nodes, 6, shortcut, seed=1).operator("row", dtype=torch.float64)
    infected = torch.zeros(nodes, 1, dtype=torch.float64)
    infected[0] = 0.9
    start = {"u": 1 - infected, "v": infected, "w": 0 * infected}
    solution = rd.solve(rd.lower(sir, op, {"beta": 0.8, "delta": 0.2}), start, times)
    for name, label in (("u", "susceptible"), ("v", "infected"), ("w", "removed")):
        panel.plot(times, solution[name].mean((1, 2)), label=label)
    panel.set(title=f"{100 * shortcut:g} % of the edges rewired", xlabel="t")
    drift = sum(solution[name] for name in ("u", "v", "w")) - 1
    print(f"{shortcut:.1f}: the sum drifts by {float(drift.abs().max()):.0e} at most")
panels[0].set_ylabel("share of the nodes")
panels[0].legend(fontsize=8)

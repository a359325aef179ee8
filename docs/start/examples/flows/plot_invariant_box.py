"""
Invariant box of Allen-Cahn
===========================

Allen-Cahn keeps its entries between -1 and 1 if the rows of A are averages. With the symmetric normalisation they
are not: at the hub of a star the neighbours add up to more than one, and the invariant box grows with the largest
row sum s. Both boxes are proved; the runs start on the boundary of the smaller one, the hub at -1 and the leaves at 1.
"""

import torch
from matplotlib.figure import Figure

import rdgraph as rd

system = rd.parse("-alpha*L@H + beta*H*(1 - H**2)")
boxes = {kind: rd.invariant_box(system, kind) for kind in ("row", "symmetric")}
for kind, box in boxes.items():
    print(f"{kind:10} [{box.lower}, {box.upper}]")

# %%

graph = rd.generators.star(10)
start = torch.ones(10, 1, dtype=torch.float64)
start[0] = -1.0
times = torch.linspace(0.0, 6.0, 121).tolist()
figure = Figure(figsize=(9, 3.6), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
for panel, (kind, box) in zip(panels, boxes.items(), strict=True):
    op = graph.operator(kind, dtype=torch.float64)
    field = rd.lower(system, op, {"alpha": 1.0, "beta": 1.0})
    states = rd.solve(field, start, times, method="dopri5").states[..., 0]
    s = float((op @ torch.ones(10, 1, dtype=torch.float64)).max())
    upper = float(box.upper.subs({"alpha": 1, "beta": 1, "s": s}))
    panel.plot(times, states[:, 0], color="#D55E00", label="hub")
    panel.plot(times, states[:, 1], color="#0072B2", label="leaf")
    panel.axhline(upper, color="black", ls="--", label=f"proved bound {upper:.3f}")
    panel.axhline(1.0, color="grey", ls=":")
    panel.set(title=f"{kind}, s = {s:.2f}", xlabel="t")
    panel.legend(fontsize=8)
panels[0].set_ylabel("H")

"""
Predator and prey on a scale-free network
=========================================

Mimura's and Murray's model on a network, after Nakao and Mikhailov (Nature Physics, 2010): the same reaction in every
node, prey u and predator v, and predators that spread twenty times faster along the edges. The steady state in which
all nodes agree is unstable, and nodes with few neighbours split into two groups.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import rdgraph as rd

entry = rd.catalogue.entry("Mimura-Murray")
print(entry.equation)
values = {**entry.parameters, "Dv": 2.4}
print(values)

# %%
# Nodes are sorted by their degree. The steady state is exact, and so is the verdict on the modes of this network.

graph = rd.generators.barabasi_albert(200, 5, seed=1)
op = graph.operator("none", dtype=torch.float64)
relation = rd.dispersion(entry.system, values, operator=op, to=2 * graph.degree.max())
print(f"at {relation.state} the instability is: {relation.kind}; {len(relation.modes.unstable)} of 200 modes grow")

noise = 1e-2 * torch.randn(200, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
field = rd.lower(entry.system, op, values)
solution = rd.solve(field, {"u": 5.0 + noise, "v": 10.0 + 0 * noise}, [0.0, 20.0, 200.0], method="rk4", step=0.01)
order = np.argsort(-graph.degree, kind="stable")
figure = Figure(figsize=(9.5, 3.4), layout="constrained")
for panel, time, state in zip(figure.subplots(1, 3, sharey=True), (0, 20, 200), solution["u"], strict=True):
    panel.plot(state[order, 0].numpy(), ".", color="#0072B2")
    panel.axhline(5.0, color="grey", ls=":")
    panel.set(title=f"t = {time}", xlabel="nodes by degree, largest first")
figure.axes[0].set_ylabel("prey u")

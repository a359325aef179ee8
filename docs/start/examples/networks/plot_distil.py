"""
Symbolic regression of a reaction from observed states
======================================================

An unknown reaction drives a diffusion on a small world. Its states are observed with noise of one
percent; the weak form of the equation proposes formulas, the flow decides between them.
"""

import numpy as np
import torch

import rdgraph as rd

graph = rd.generators.watts_strogatz(16, 4, 0.2, seed=0)
truth = "-alpha*L@H + beta*H*(1 - H)*(H - a)"
values = {"alpha": 0.3, "beta": 1.6, "a": 0.35}
field = rd.lower(truth, graph.operator(dtype=torch.float64), values)
times = np.linspace(0, 4, 33)
start = torch.linspace(-0.4, 1.4, 16, dtype=torch.float64)[:, None]
clean = rd.solve(field, start, torch.as_tensor(times)).states.numpy()
noise = 0.01 * np.sqrt(np.square(clean).mean())
seen = clean + noise * np.random.default_rng(0).standard_normal(clean.shape)

# %%

found = rd.infer.distil(seen, times, graph, "-alpha*L@H + phi(H)", initial=start, functions=("sin",), level=None)
print(found)
figure = found.plot()

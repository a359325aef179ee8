"""
Oversmoothing depends on the normalisation
==========================================

Whether diffusion sends the Dirichlet energy to zero depends on the normalisation: with rows that sum to one the limit
is the same in all nodes, with the symmetric normalisation it is a multiple of the square root of the degree, and the
energy of that is not zero. The verdict is proved from the modes that the start excites; the curves are measured.
"""

import torch
from matplotlib.figure import Figure

import analysis
import rdgraph as rd

graph = rd.generators.barabasi_albert(60, 2, seed=0)
start = torch.randn(60, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
runs = [
    ("diffusion", "row", {"alpha": 1.0}),
    ("diffusion", "symmetric", {"alpha": 1.0}),
    ("BS", "row", {"alpha": 1.0, "beta": 0.5}),
    ("AC", "row", {"alpha": 1.0, "beta": 1.0}),
]
figure = Figure(figsize=(7.5, 4.2), layout="constrained")
panel = figure.subplots()
for (name, normalisation, values), style in zip(runs, ["-", "--", "-.", ":"], strict=True):
    verdict = analysis.oversmoothing(name, graph, values, start, T=30.0, normalisation=normalisation)
    energy = verdict.energies["dirichlet"]
    panel.plot(verdict.times[energy > 0], energy[energy > 0], style, label=f"{name}, {normalisation}: {verdict.answer}")
panel.set(xlabel="t", ylabel="Dirichlet energy", yscale="log", ylim=(1e-8, None))
panel.legend(fontsize=8)

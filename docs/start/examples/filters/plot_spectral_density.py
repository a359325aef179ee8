"""
Spectral density of a large graph
=================================

The density of the eigenvalues of L takes a hundred sparse products with sixteen random vectors (the kernel polynomial
method), for a graph of any size. On graphs of 1,000 nodes it is compared with all eigenvalues.
"""

import torch
from matplotlib.figure import Figure

import analysis
import rdgraph as rd

graphs = {
    "random": rd.generators.erdos_renyi(1000, 0.012, seed=1),
    "scale-free": rd.generators.barabasi_albert(1000, 6, seed=1),
    "grid": rd.generators.grid(25, 40),
}
figure = Figure(figsize=(10, 3.2), layout="constrained")
panels = figure.subplots(1, len(graphs), sharex=True)
for panel, (name, graph) in zip(panels, graphs.items(), strict=True):
    op = graph.operator("symmetric", dtype=torch.float64)
    counted = analysis.spectral_density(op, points=50, method="histogram")
    estimated = analysis.spectral_density(op, points=200, method="polynomial")
    panel.bar(counted.lam, counted.density, width=0.04, color="#56B4E9", label="eigenvalues, counted")
    panel.plot(estimated.lam, estimated.density, color="#D55E00", label="100 sparse products")
    panel.set(title=name, xlabel="λ, eigenvalue of L")
panels[0].set_ylabel("density")
panels[0].legend(fontsize=8)

"""
Exact Turing threshold
======================

For the Brusselator the coefficient b at which patterns begin is the root of a polynomial that is derived from its text,
for every ratio of the diffusivities. On the plane of b and Dv the curve is compared with the growth on a ring.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import analysis
import rdgraph as rd

system = rd.parse("u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v")
print(*rd.turing_threshold(system, "b", {"a": 2, "Du": 1, "Dv": 16}), sep="\n")

# %%
# The threshold as a curve, over the largest growth among the modes of a ring of 200 nodes:

a, rows, columns = 2.0, np.linspace(1.5, 4.5, 61), np.linspace(4.0, 24.0, 61)
lam = analysis.spectrum(rd.generators.ring(200).operator("row", dtype=torch.float64)).values
b, d, x = rows[:, None, None], columns[None, :, None], lam[None, None, :]
J = np.empty((len(rows), len(columns), len(lam), 2, 2))
J[..., 0, 0], J[..., 0, 1] = b - 1 - x, a**2
J[..., 1, 0], J[..., 1, 1] = -b, -(a**2) - d * x
growth = np.linalg.eigvals(J).real.max((-2, -1))

spreads = range(8, 24, 5)
found = [float(rd.turing_threshold(system, "b", {"a": 2, "Du": 1, "Dv": dv})[0].value) for dv in spreads]
figure = Figure(figsize=(6.5, 4.4), layout="constrained")
panel = figure.subplots()
picture = panel.pcolormesh(columns, rows, growth, cmap="RdBu_r", vmin=-1, vmax=1, shading="nearest")
panel.plot(spreads, found, "ko--", label="turing_threshold")
panel.set(xlabel="Dv", ylabel="b")
panel.legend()
figure.colorbar(picture, label="largest growth on a ring")

"""
Blow-up time of Fisher's equation
=================================

Solutions of Fisher's equation exist for all time if they start between 0 and 1, and blow up from below zero. The time
is known in closed form; the integrator finds it as a status of the member that failed, while all other members of the
batch go on.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import rdgraph as rd

system = rd.parse("-alpha*L@H + beta*H*(1 - H)")
(blow_up,) = rd.existence(system).blow_ups
print(blow_up)

# %%
# Sixteen starts, the same in all nodes of a ring, each a member of one batch:

starts = -np.geomspace(0.02, 2.0, 16)
op = rd.generators.ring(12).operator("row", dtype=torch.float64)
field = rd.lower(system, op, {"alpha": 1.0, "beta": 1.0}, batch=(16,))
states = torch.as_tensor(starts)[:, None, None] * torch.ones(12, 1, dtype=torch.float64)
solution = rd.solve(field, states, [0.0, 6.0], method="dopri5")

times = np.linspace(-2.0, -0.015, 300)
figure = Figure(figsize=(7, 4), layout="constrained")
panel = figure.subplots()
panel.plot(times, np.log(1 - 1 / times), color="#0072B2", label="log(1 - 1/h0)/beta, proved")
panel.plot(starts, solution.failed_at, "o", mfc="none", color="#D55E00", label="where dopri5 gave up")
panel.set(xlabel="start h0", ylabel="time of blow-up")
panel.legend()

# %%

exact = np.log(1 - 1 / starts)
print("statuses:", {str(status) for status in solution.status})
print(f"largest relative difference: {np.abs(solution.failed_at.numpy() / exact - 1).max():.1e}")

"""
Dispersion relation of a Turing instability
===========================================

The dispersion relation says how fast every frequency grows near a steady state. On a graph only its own eigenvalues
count: a pattern needs one of them inside the band.
"""

import torch

import rdgraph as rd

system = "u' = a - (b + 1)*u + u**2*v - Du*L@u; v' = b*u - u**2*v - Dv*L@v"
values = {"a": 2, "b": 3.2, "Du": 1, "Dv": 12}
ring, tree = rd.generators.ring(24), rd.generators.barabasi_albert(24, 1, seed=2)
answers = [rd.dispersion(system, values, operator=graph.operator("row", dtype=torch.float64)) for graph in (ring, tree)]
figure = answers[0].plot()

# %%

for name, answer in zip(("ring", "tree"), answers, strict=True):
    modes = answer.modes
    print(
        f"{name}: {len(modes.unstable)} of {len(modes.growth)} modes grow; bands {', '.join(map(str, answer.unstable))}"
    )

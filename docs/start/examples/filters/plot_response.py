"""
Filter response of exact and stepped flows
==========================================

On an eigenvector of L with eigenvalue λ a linear equation is one number p(λ), and after the time T its gain is
exp(T p(λ)). A solver has its own gain. Here are both for blurring-sharpening (BS) and three
relatives: with steps of 1, Euler's method and RK4 amplify the highest frequency of BS, which the flow damps.
"""

import analysis

figure, curves = analysis.response_figure(
    ["diffusion", "BS", "FB", "FB*"],
    T=4.0,
    values={"alpha": 1.0, "beta": 0.8},
    methods=[("exact", None), ("euler", 1.0), ("rk4", 1.0)],
)

# %%
# The numbers behind a picture come along. These are the gains of the top frequency, λ = 2:

for curve in curves:
    print(f"{curve.system:10} {curve.method:6} {curve.gain[-1]:12.4g}")

"""The sparse product: differentiable `operations`, `torch_reference` in plain torch, kernels in Triton and compiled
C."""

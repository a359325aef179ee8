"""The sparse product: `ops` the differentiable operations, `plain` torch alone, `fused` the Triton kernels."""

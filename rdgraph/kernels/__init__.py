"""The sparse product: `ops` its differentiable operations, `plain` torch alone, `fused` and `sampled` in Triton."""

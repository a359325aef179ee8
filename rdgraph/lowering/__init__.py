"""From an equation to torch: `sums` the linear form, `plan` the products, `torchcode` the source, `field` what runs."""

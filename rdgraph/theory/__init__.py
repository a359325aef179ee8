"""What is proved of a system: filters, Lipschitz constants, existence, boxes, steps, closed flows, conservation."""

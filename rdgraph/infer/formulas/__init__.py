"""Short formulas for functions that were sampled, learned, or only seen through the states that they drive."""

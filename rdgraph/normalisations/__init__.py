"""Normalisations as data: what each makes of the weights of a graph, and what may be assumed of the result."""

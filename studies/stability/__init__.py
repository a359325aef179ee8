"""A system of several fields on a graph, over a plane of two coefficients: what is predicted, and what is run."""

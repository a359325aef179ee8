"""Running an equation: `lowering/` to a vector field, `solvers/` to trajectories, `engines/` on one machine or a
cluster."""

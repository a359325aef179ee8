"""From a field to trajectories: `solve`, its fixed-step, adaptive, exact and splitting methods, and `Solution`."""

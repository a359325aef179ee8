"""Measurements of systems and trajectories, and figures."""

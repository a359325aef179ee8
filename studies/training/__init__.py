"""A training as a run folder: plan, figures, report."""

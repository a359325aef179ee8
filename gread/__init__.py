"""Data sets, the GREAD classifier, baselines and training."""

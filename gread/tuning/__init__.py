"""The search for settings: `space` what is tried, `rounds` and `halving` the trainings, `searching` the whole."""

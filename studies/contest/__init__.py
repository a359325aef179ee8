"""Networks and baselines compared on the same splits, as a run folder."""

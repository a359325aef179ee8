"""Networks and references on the same splits, as a run folder."""

"""A learned function or a layer as a formula, in a run folder."""

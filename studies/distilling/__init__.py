"""A learned function or a layer as a formula: a run folder whose page has the answer first."""

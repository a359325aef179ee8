"""A search over equations as a run folder: what was tried, what was chosen, what is proved of it, what it is worth."""

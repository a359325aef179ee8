"""A search over equations as a run folder: trials, the choice, proofs about it, and how much it is worth."""

"""Whether GREAD-BS is better than GRAND: the printed test, and tests that the splits allow."""

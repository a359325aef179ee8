"""Why numbers are not reproduced: which completion of what the paper leaves open comes nearest."""

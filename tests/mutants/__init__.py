"""Changed programs that the tests should notice: `python -m tests.mutants`, by mutmut on a sample drawn at random."""

"""Extensions of Sphinx for `make docs`: formulas, docstrings, reference pages, notebooks, pictures, a final check."""

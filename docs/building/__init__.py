"""What `make docs` needs beside Sphinx: formulas, docstrings, pages of the reference, notebooks, pictures, a check."""

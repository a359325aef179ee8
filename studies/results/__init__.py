"""Measured results as package data, for the ledger, the studies and the pages of the documentation.

Each file is written by one program and contains its command; `parts/` has the parts of studies, from which their run
folders can be restored.
"""

from studies.results.reading import page_path, pages_folder, read_result, result_link, results_folder

__all__ = ["page_path", "pages_folder", "read_result", "result_link", "results_folder"]

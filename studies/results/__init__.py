"""Measured results as package data: what the ledger, the studies and the pages of the documentation read.

Each file is written by one program and holds the command that wrote it; `parts/` holds the parts of studies whose run
folders can be restored from them.
"""

from studies.results.reading import page_path, pages_folder, read_result, result_link, results_folder

__all__ = ["page_path", "pages_folder", "read_result", "result_link", "results_folder"]

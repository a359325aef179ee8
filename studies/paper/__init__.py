"""The studies of the paper's tables: one runner, and for every study a sheet of settings and words and a module."""

"""Statistics of the data sets, and differences from the published table."""

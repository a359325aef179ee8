"""The main tables: seven reactions and the compared networks on nine data sets, beside the published numbers."""

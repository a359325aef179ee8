"""One question per file, the command line and the reports."""

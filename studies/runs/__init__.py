"""Run folders: settings, tables, reports, the index over them."""

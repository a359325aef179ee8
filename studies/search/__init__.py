"""A search for settings as a run folder: `tasks` resolves the request, `study` runs it."""

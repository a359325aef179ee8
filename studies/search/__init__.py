"""A search for settings as a run folder: `tasks` what is searched, `study` the run, `pictures` its figures."""

"""The command line: `app`, its commands, what they print, and the edge where errors become text."""

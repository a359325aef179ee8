"""Every published number and claim as a row: ours beside it, a test, a status, a cause, a command, a hash."""

"""Every published number and claim as a row with our number, a test, a status, a cause, a command and a hash."""

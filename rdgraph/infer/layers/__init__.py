"""Does this code compute that equation? `conform`, `recover`, and properties of any layer."""

"""Filter responses at the published settings."""

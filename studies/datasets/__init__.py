"""The data sets: what they are, and where the published table differs."""

"""How fast and how accurate: programs that measure, and the pages made of their numbers."""

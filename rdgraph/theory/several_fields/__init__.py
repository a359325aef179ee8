"""Several fields, time, noise and further operators: rectangles, lifetimes, conserved sums, slopes."""

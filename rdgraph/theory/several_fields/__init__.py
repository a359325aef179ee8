"""Several fields, time, noise and further operators: rectangles, conserved sums, slopes."""

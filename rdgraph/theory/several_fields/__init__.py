"""Several fields, time, noise and further operators: rectangles, slopes."""

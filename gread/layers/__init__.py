"""Layers to put between other layers: `conv` and the edges of its calls."""

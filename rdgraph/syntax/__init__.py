"""Text and tree: `tree` the nodes, `reader` and `printer` between text and tree, `functions` of the language."""

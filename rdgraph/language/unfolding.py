"""`unfolded`: calls of defined functions replaced by their definitions, within limits that are checked first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import NotApplicable
from rdgraph.language.tree import Call, Name, field
from rdgraph.vocabulary.functions import FUNCTIONS

#: Most nodes and levels of a tree whose calls are written out; each node takes at least one character of text.
MAX_NODES = 4000
MAX_DEPTH = 150

ARGUMENT = field("H")


def abbreviations() -> dict[str, sp.Basic]:
    """The registered functions that are defined in the language, with their trees in H."""
    return {name: record.definition for name, record in FUNCTIONS.items() if record.definition is not None}


def unfolded(tree: sp.Basic, definitions: Mapping[str, sp.Basic] | None = None) -> sp.Basic:
    """The tree with every call of a defined function written out; without `definitions`, of the registered ones.

    g(X) becomes the definition of g with X for H. Raises NotApplicable where the result is too large.

    >>> from rdgraph.language.printer import to_text
    >>> from rdgraph.language.reader import Vocabulary, read_expression
    >>> g = {"g": read_expression("H/(1 + H)")}
    >>> to_text(unfolded(read_expression("g(A@H)", Vocabulary.standard(functions=g)), g))
    'A@H/(1 + A@H)'
    """
    known = abbreviations() if definitions is None else definitions
    if not any(call.function in known for call in tree.atoms(Call)):
        return tree
    size = _size(tree, known)
    if size.nodes > MAX_NODES or size.depth > MAX_DEPTH:
        raise NotApplicable(
            f"expected functions that write out to at most {MAX_NODES} parts, {MAX_DEPTH} deep, "
            f"got {size.nodes} parts, {size.depth} deep; nest them less"
        )
    return _written_out(tree, known)


def _written_out(node: sp.Basic, known: Mapping[str, sp.Basic]) -> sp.Basic:
    if isinstance(node, Call):
        argument = _written_out(node.argument, known)
        if node.function not in known:
            return Call(node.function, argument)
        return _written_out(known[node.function], known).xreplace({ARGUMENT: argument})
    if isinstance(node, Name) or not node.args:
        return node
    return node.func(*(_written_out(part, known) for part in node.args))


@dataclass(frozen=True)
class _Size:
    """Nodes and levels of a tree before H is replaced, the number of its H and their depth."""

    nodes: int
    depth: int
    uses: int = 0
    lowest: int = 0


def _size(node: sp.Basic, known: Mapping[str, sp.Basic]) -> _Size:
    if isinstance(node, Call):
        inner = _size(node.argument, known)
        outer = _size(known[node.function], known) if node.function in known else _Size(1, 1, 1, 1)
        return _Size(
            outer.nodes + outer.uses * inner.nodes,
            max(outer.depth, outer.lowest + inner.depth),
            outer.uses * inner.uses,
            outer.lowest + inner.lowest,
        )
    if node == ARGUMENT:
        return _Size(1, 1, 1, 0)
    if isinstance(node, Name) or not node.args:
        return _Size(1, 1)
    parts = [_size(part, known) for part in node.args]
    return _Size(
        1 + sum(p.nodes for p in parts), 1 + max(p.depth for p in parts), sum(p.uses for p in parts),
        1 + max(p.lowest for p in parts),
    )  # fmt: skip


def lowerable(tree: sp.Basic) -> sp.Basic:
    """The tree with the registered functions that have no torch source written out."""
    return unfolded(tree, {name: d for name, d in abbreviations().items() if FUNCTIONS[name].torch is None})

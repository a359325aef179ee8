"""The same equation written differently, and equations that differ a little."""

from __future__ import annotations

import ast
import copy
import re

import numpy as np

from tests.adversary.expressions import read

Random = np.random.Generator

#: Pairs of texts with the same value for every real H.
IDENTITIES = (
    ("relu(H)", "(H + abs(H))/2"), ("sigmoid(2*H)", "(1 + tanh(H))/2"), ("sin(H)**2", "(1 - cos(H)**2)"),
    ("softplus(H)", "(H + softplus(-H))"), ("abs(H)", "sqrt(H**2)"), ("abs(H)", "(relu(H) + relu(-H))"),
    ("relu(2*H)", "2*relu(H)"), ("tanh(H)", "-tanh(-H)"), ("cos(H)", "cos(-H)"), ("exp(2*H)", "exp(H)**2"),
    ("sigmoid(-H)", "(1 - sigmoid(H))"), ("abs(H)**2", "H**2"), ("sin(2*H)", "2*sin(H)*cos(H)"), ("M*M*H", "M*H"),
    ("relu(H)*relu(-H)", "0*H"), ("relu(relu(H))", "relu(H)"), ("abs(-H)", "abs(H)"), ("M**3*H0", "M*H0"),
    ("cos(2*H)", "(1 - 2*sin(H)**2)"), ("L@H", "(H - A@H)"), ("A@A@H", "A@(A@H)"), ("tanh(H)", "(2*sigmoid(2*H) - 1)"),
    ("M*(1 - M)*H", "0*H"), ("exp(H)*exp(-H)*H", "H"), ("(1 - M)*(1 - M)*H", "(1 - M)*H"),
    ("cos(H)**2", "(1 + cos(2*H))/2"), ("sin(H)*cos(H)", "sin(2*H)/2"), ("sin(H)**3", "(3*sin(H) - sin(3*H))/4"),
    ("tanh(H)", "(exp(2*H) - 1)/(exp(2*H) + 1)"), ("sigmoid(H)", "1/(1 + exp(-H))"),
    ("tanh(H)**2", "(1 - 4*sigmoid(2*H)*sigmoid(-2*H))"), ("tanh(H)**2", "((exp(2*H) - 1)/(exp(2*H) + 1))**2"),
    ("sigmoid(H)*(1 - sigmoid(H))", "exp(H)/(1 + exp(H))**2"), ("relu(H - 1) + 1", "(H + 1 + abs(H - 1))/2"),
    ("H*abs(H)", "(relu(H)**2 - relu(-H)**2)"), ("relu(H)**2", "H*relu(H)"),
    ("relu(1 - H)", "(abs(H - 1) + 1 - H)/2"), ("H*(1 - H)", "(H - H**2)"), ("H*(1 - H)*(H + 1)", "(H - H**3)"),
    ("(1 - H)**2", "(1 - 2*H + H**2)"), ("H**2/(1 + H**2)", "(1 - 1/(1 + H**2))"),
    ("A@(H + tanh(H))", "(A@H + A@tanh(H))"), ("H*(A@H - H)", "-H*(L@H)"), ("tanh(H)*(A@H - H)", "-(L@H)*tanh(H)"),
    ("sigmoid(H)*(A@H - H)", "(A@H - H)/(1 + exp(-H))"), ("(1 - tanh(H)**2)", "4*sigmoid(2*H)*(1 - sigmoid(2*H))"),
    ("sqrt((H - 1)**2)", "abs(H - 1)"), ("abs(tanh(H))", "tanh(abs(H))"), ("exp(softplus(H))", "(1 + exp(H))"),
    ("H**3/(1 + H**2)", "(H - H/(1 + H**2))"), ("relu(tanh(H))", "(tanh(H) + tanh(abs(H)))/2"),
    ("softplus(H) - softplus(-H)", "H"), ("tanh(H) + relu(H)", "(2*sigmoid(2*H) - 1 + (H + abs(H))/2)"),
)  # fmt: skip

#: Pairs that look alike and differ somewhere.
LOOKALIKES = (
    ("relu(H)", "abs(H)"), ("sigmoid(2*H)", "tanh(H)"), ("sqrt(H**2)", "H"), ("abs(H)", "relu(H)"), ("M*H", "H"),
    ("relu(H) - relu(-H)", "abs(H)"), ("A@(H**2)", "(A@H)**2"), ("A@A@H", "A@H"), ("L@L@H", "L@H"), ("M*H", "M*M*H0"),
    ("softplus(H)", "relu(H)"), ("A@(M*H)", "M*(A@H)"), ("tanh(2*H)", "2*tanh(H)"), ("L@A@H", "L@H"),
    ("abs(A@H)", "A@abs(H)"), ("H*(A@H)", "A@(H*H)"), ("exp(H)", "1 + H"), ("H**2/(1 + H**2)", "H/(1 + H)"),
)  # fmt: skip


class _Rewriter(ast.NodeTransformer):
    """L -> I - A, commuted sums and products, spread products, split powers, each with some chance."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "L" and self.rng.random() < 0.6:
            return read("I - A")
        if node.id == "A" and self.rng.random() < 0.25:
            return read("I - L")
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.op, ast.Pow):
            return self.power(node)
        self.generic_visit(node)
        left, right = node.left, node.right
        match node.op:
            case ast.Add() if self.rng.random() < 0.5:
                return ast.BinOp(right, ast.Add(), left)
            case ast.Sub() if self.rng.random() < 0.3:
                return ast.BinOp(ast.UnaryOp(ast.USub(), right), ast.Add(), left)
            case ast.Mult() if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Add | ast.Sub):
                parts = [ast.BinOp(copy.deepcopy(left), ast.Mult(), side) for side in (right.left, right.right)]
                return ast.BinOp(parts[0], right.op, parts[1])
            case ast.MatMult() if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add | ast.Sub):
                parts = [ast.BinOp(side, ast.MatMult(), copy.deepcopy(right)) for side in (left.left, left.right)]
                return ast.BinOp(parts[0], left.op, parts[1])
        return node

    def power(self, node: ast.BinOp) -> ast.expr:
        exponent = node.right
        if isinstance(exponent, ast.Constant) and exponent.value in (2, 3) and self.rng.random() < 0.5:
            base = self.visit(node.left)
            operator = isinstance(node.left, ast.Name) and node.left.id in ("A", "L")
            sign = ast.MatMult() if operator else ast.Mult()
            product: ast.expr = base
            for _ in range(int(exponent.value) - 1):  # type: ignore[arg-type]
                product = ast.BinOp(product, sign, copy.deepcopy(base))
            return product
        return node


def rewritten(text: str, rng: Random) -> str:
    """Another text for the same right-hand side."""
    tree = _Rewriter(rng).visit(copy.deepcopy(read(text)))
    return ast.unparse(ast.fix_missing_locations(tree))


def inserted(text: str, inner: str) -> str:
    """The text with another operand in place of H."""
    return re.sub(r"\bH\b", lambda found: inner, text)


def altered(text: str, letters: list[str], rng: Random) -> str:
    """A text that differs in one number, letter or sign, or by a small term."""
    options = [f"{text} + 0.001*H", f"{text} - H0", f"{text} + 0.5*A@H", f"({text})*2", f"{text} + H**2"]
    if len(letters) > 1:
        first, second = rng.permutation(letters)[:2]
        options += [_renamed(text, str(first), str(second))] * 3
    if letters:
        options.append(f"{text} + ({letters[0]} - {letters[0]}**2)*H")
    return str(options[int(rng.integers(len(options)))])


def _renamed(text: str, old: str, new: str) -> str:
    tree = copy.deepcopy(read(text))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == old:
            node.id = new
    return ast.unparse(tree)

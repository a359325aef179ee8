"""Statements about graph reaction-diffusion and the machinery that decides them.

run: verify, decide, select, markdown; values: Claim, Statement, Check, Verdict.
"""

from rdgraph.claims.registry import Check, Claim, Statement, Verdict, decide, markdown, select, statements, verify

__all__ = ["Check", "Claim", "Statement", "Verdict", "decide", "markdown", "select", "statements", "verify"]

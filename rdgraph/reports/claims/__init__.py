"""Statements about graph reaction-diffusion and the machinery that decides them.

run: verify, decide, select, markdown; values: Claim, ClaimStatement, ClaimCheck, ClaimVerdict.
"""

from rdgraph.reports.claims.claim_records import (
    Claim,
    ClaimCheck,
    ClaimStatement,
    ClaimVerdict,
    decide,
    markdown,
    select,
    statements,
    verify,
)

__all__ = [
    "Claim",
    "ClaimCheck",
    "ClaimStatement",
    "ClaimVerdict",
    "decide",
    "markdown",
    "select",
    "statements",
    "verify",
]

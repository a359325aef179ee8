"""Answers brought together: `summary` of one system, `preflight_report` of one run.

reports: Analysis, Report, Claim
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph.reports.claims import Claim as Claim
    from rdgraph.reports.findings import Report as Report
    from rdgraph.reports.summary import Analysis as Analysis

__all__, __getattr__, __dir__ = lazy_door(__name__)

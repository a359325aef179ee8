"""How many examples property tests are given: by the profile, which HYPOTHESIS_PROFILE names."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
#: What Hypothesis itself gives a test that asks for no number.
USUAL = 100


def examples(asked: int, profile: str = PROFILE) -> int:
    """The examples of a test that asks for some: a first look (`make test`), half (`make test-slow`), or more.

    Every `settings(max_examples=...)` in a test goes through here: a number of its own would hide that of the profile.

    >>> examples(60, "quick"), examples(60, "ci"), examples(60, "deep")
    (6, 30, 1800)
    """
    match profile:
        case "quick":
            return min(asked, max(3, asked // 10))
        case "deep":
            return max(1000, 30 * asked)
    return max(min(asked, 10), asked // 2)

"""The area under the ROC curve of many members at once, on the device, with nothing asked of the host."""

from __future__ import annotations

import torch
from torch import Tensor


def area_under_roc(scores: Tensor, positive: Tensor, masks: Tensor) -> Tensor:
    """The areas (M, P) of scores (M, n) on the nodes of masks (M, P, n): nan where one of the two classes is missing.

    It is the share of pairs of a positive and another node that the scores put in this order; a tie is half a pair:

        sum over positive i of (#{j negative: s_j < s_i} + #{j negative: s_j <= s_i}) / (2 #positive #negative)

    Args:
        scores: Finite numbers, larger for positive nodes.
        positive: Which nodes are positive, (1 or M, n).
        masks: 1 at the nodes that count, else 0.

    Returns:
        float64, (M, P).

    >>> scores, positive = torch.tensor([[0.1, 0.4, 0.4, 0.8]]), torch.tensor([[False, True, False, True]])
    >>> area_under_roc(scores, positive, torch.ones(1, 1, 4))
    tensor([[0.8750]], dtype=torch.float64)
    """
    ordered, order = scores.sort(-1)
    ordered = ordered.contiguous()
    ends = [torch.searchsorted(ordered, ordered, right=right) for right in (False, True)]
    own = positive.expand_as(scores).gather(-1, order)[:, None]
    counted = masks.gather(-1, order[:, None].expand_as(masks)).double()
    positives, negatives = counted * own, counted * ~own
    # below[k] negative nodes are among the first k
    below = torch.cat([torch.zeros_like(negatives[..., :1]), negatives.cumsum(-1)], -1)
    pairs = sum(below.gather(-1, end[:, None].expand_as(masks)) for end in ends)
    return (positives * pairs).sum(-1) / (2 * positives.sum(-1) * negatives.sum(-1))

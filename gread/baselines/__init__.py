"""The methods that GREAD is compared with.

by name:   zoo, find_baseline, make_baseline
training:  fit, Fitted
"""

from gread.baselines.fitting import Fitted, fit
from gread.baselines.registry import find_baseline, make_baseline, zoo

__all__ = ["Fitted", "find_baseline", "fit", "make_baseline", "zoo"]

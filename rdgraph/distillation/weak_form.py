"""The weak form of an equation along observed states: rows that are linear in its coefficients and its function.

With a test function psi that vanishes at the ends of a window of time, dH/dt = sum c_j w_j(H) + phi(H) gives

    -int psi' H dt = sum c_j int psi w_j(H) dt + int psi phi(H) dt

so that no state is differentiated (Messenger and Bortz 2021, "Weak SINDy for partial differential equations").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rdgraph.distillation.sampled_target import Target
from rdgraph.errors import InvalidArgument

Array = np.ndarray
#: Points of time at which smoothed states are taken, test functions, and the half width of these in parts of the time.
POINTS, TESTS, HALF_WIDTH = 160, 24, 0.12
_ORDER = 4
#: Observations of an entry that a smooth course needs.
FEWEST = 8


@dataclass(frozen=True)
class SmoothStates:
    """Smoothed states (points, entries) at equally spaced times, and the noise of the observed ones."""

    times: Array
    states: Array
    noise: float


def smooth_states(times: Array, states: Array) -> SmoothStates:
    """Every entry of states (K, entries) smoothed over time, its roughness chosen by cross-validation.

    Entries that were not observed are NaN.
    """
    from scipy.interpolate import make_smoothing_spline

    seen = np.isfinite(states)
    if (least := int(seen.sum(0).min())) < FEWEST:
        raise InvalidArgument(
            f"expected every node to be observed at least {FEWEST} times, got {least}; observe more, or leave nodes out"
        )
    span = times[-1] - times[0]
    fine = np.linspace(times[0], times[-1], POINTS)
    unit = (times - times[0]) / span
    columns = []
    for k in range(states.shape[1]):
        kept = seen[:, k]
        scale = float(np.ptp(states[kept, k])) or 1.0
        spline = make_smoothing_spline(unit[kept], states[kept, k] / scale)
        columns.append(scale * spline(np.linspace(0.0, 1.0, POINTS)))
    return SmoothStates(fine, np.stack(columns, 1), noise_level(times, states))


def noise_level(times: Array, states: Array) -> float:
    """The noise of states (K, entries): how far they lie from the cubic through their four neighbours in time.

    Gasser, Sroka and Jennen-Steinmetz 1986 take the line through two.
    """
    if len(times) < 5:
        raise InvalidArgument(f"expected at least 5 times, got {len(times)}; observe more")
    squares = []
    for k in range(2, len(times) - 2):
        around = np.array([k - 2, k - 1, k + 1, k + 2])
        others = times[around]
        weights = np.array(
            [np.prod([(times[k] - o) / (t - o) for o in others if o != t]) for t in others]
        )  # Lagrange's, of the cubic
        squares.append(np.square(states[k] - weights @ states[around]) / (1 + np.square(weights).sum()))
    return float(np.sqrt(np.nanmean(np.stack(squares))))


@dataclass(frozen=True)
class WeakForm:
    """Rows (tests, entries) of the observed states, and of what each known term makes with coefficient 1.

    `weights` (tests, points) takes the values of a term along the smoothed states to its rows.
    """

    smooth: SmoothStates
    weights: Array
    rows: Array
    columns: Array

    def target(self) -> Target:
        """What is left for the function: the rows without what the known terms can explain."""
        basis = self._basis()

        def measure(values: Array) -> Array:
            shaped = values.reshape(*values.shape[:-1], *self.smooth.states.shape)
            made = np.matmul(self.weights, shaped).reshape(*values.shape[:-1], -1)
            return made - (made @ basis) @ basis.T

        y = self.rows.reshape(1, -1)
        return Target(self.smooth.states.reshape(1, -1), y - (y @ basis) @ basis.T, measure)

    def coefficients(self, values: Array) -> Array:
        """The coefficients of the known terms, given the values of the function along the smoothed states."""
        left = self.rows - self.weights @ values.reshape(self.smooth.states.shape)
        flat = self.columns.reshape(len(self.columns), -1)
        found, *_ = np.linalg.lstsq(flat.T, left.reshape(-1), rcond=None)
        return found

    def _basis(self) -> Array:
        flat = self.columns.reshape(len(self.columns), self.rows.size)
        return np.linalg.qr(flat.T)[0] if len(flat) else np.zeros((self.rows.size, 0))


def weak_form(smooth: SmoothStates, known: Array, terms: Array) -> WeakForm:
    """Rows from the term without a coefficient (points, entries) and those with one (count, points, entries)."""
    span = smooth.times[-1] - smooth.times[0]
    half = HALF_WIDTH * span
    centres = np.linspace(smooth.times[0] + half, smooth.times[-1] - half, TESTS)
    s = (smooth.times - centres[:, None]) / half
    inside = np.where(np.abs(s) < 1, 1 - s**2, 0.0)
    step = span / (POINTS - 1)
    weights = inside**_ORDER * step
    slopes = -2 * _ORDER * s / half * inside ** (_ORDER - 1) * step
    rows = -slopes @ smooth.states - weights @ known
    return WeakForm(smooth, weights, rows, np.matmul(weights, terms))


def spline_function(form: WeakForm, knots: int = 14) -> tuple[Array, Array, float]:
    """The function as a cubic spline: points, values there, and the error of a row that it leaves.

    The spline is bent as little as the rows allow: a small penalty on its second differences.
    """
    from scipy.interpolate import BSpline

    target = form.target()
    x = target.x.reshape(-1)
    inner = np.linspace(x.min(), x.max(), knots - 2)
    places = np.concatenate([[inner[0]] * 3, inner, [inner[-1]] * 3])
    count = len(places) - 4
    design = BSpline.design_matrix(x, places, 3).toarray()
    matrix = np.stack([target.measure(design[:, k][None])[0] for k in range(count)], 1)
    bend = np.diff(np.eye(count), 2, axis=0)
    products = matrix.T @ matrix
    products += 1e-5 * np.trace(products) / count * bend.T @ bend + 1e-12 * np.trace(products) * np.eye(count)
    found = np.linalg.solve(products, matrix.T @ target.y[0])
    left = target.y[0] - matrix @ found
    points = np.linspace(x.min(), x.max(), 101)
    freedom = max(len(left) - count, 1)
    return points, BSpline(places, found, 3)(points), float(np.sqrt(left @ left / freedom))

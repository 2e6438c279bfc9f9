"""What the models think, in the user's units: `predict` of every model-based optimizer.

The models see standardised values, behind which there may be a transform. All transforms are
monotone, so medians and intervals go straight back; means and deviations are those of the normal
law of the model sent back through the transform, by Gauss-Hermite quadrature.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.special import log_ndtr, ndtri

from cbo_suite.errors import InvalidTask
from cbo_suite.optimizers.models.failures import Failures, failed_rows
from cbo_suite.optimizers.models.surrogate import Surrogate, Transform
from cbo_suite.optimizers.models.transforms import standardize
from cbo_suite.protocols import Array, Band, Evaluation, Prediction, Space

# Probability that a value lies inside its interval.
INTERVAL = 0.9
# Points of the quadrature: means of the bilog's exponential tails need some.
NODES = 40
SMALLEST_DEVIATION = 1e-12


def predict(
    space: Space,
    x: Array,
    surrogate: Surrogate,
    transform: Transform,
    data: Array,
    told: Evaluation,
) -> Prediction:
    """What models of some data say about points of the box.

    Args:
        space: The box and the number of constraints m.
        x: The points, shape `(p, d)`.
        surrogate: Makes the models, and is changed by that: hand over a copy.
        transform: That of the surrogate.
        data: Results that the models are made of, in the unit cube, shape `(n, d)`.
        told: Their values.

    Raises:
        InvalidTask: There are no data.
        InvalidPoint: The points have the wrong shape or leave the box.
    """
    x = space.validate(x)
    if len(data) == 0:
        raise InvalidTask("nothing can be predicted before a result was told: tell one first")
    unit = np.clip(space.to_unit(x), 0.0, 1.0)
    with torch.inference_mode():
        model = surrogate.update(data, told.objective, told.constraints)
        mean, deviation = model.predict(surrogate.tensor(unit))
        log_success = Failures(data, failed_rows(told)).log_success(torch.from_numpy(unit))
    log_feasible = log_success.numpy().copy()
    objective = _band(mean[0], deviation[0], lambda z: transform.objective_back(z, told.objective))

    seen = transform.constraints(told.constraints)
    # Mean, deviation, median and interval of each; what never changed is certain.
    values = transform.constraints_back(seen[0])
    constraints = np.zeros((5, len(x), space.num_constraints)) + values
    constraints[1] = 0.0
    constant = standardize(seen).constant
    for row, column in enumerate(np.flatnonzero(~constant), start=1):
        constraints[:, :, column] = _band(mean[row], deviation[row], transform.constraints_back)
        log_feasible += log_ndtr(-mean[row] / np.maximum(deviation[row], SMALLEST_DEVIATION))
    if (values[constant] > 0.0).any():
        log_feasible[:] = -np.inf
    return Prediction(x, objective, Band(*constraints), np.exp(log_feasible))


def _band(mean: Array, deviation: Array, back: Callable[[Array], Array]) -> Band:
    """Send normal laws of these means and deviations, both `(p,)`, back to the user's units."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    values = back(mean + deviation * nodes[:, None])
    average = weights @ values
    spread = np.sqrt(weights @ np.square(values - average))
    reach = float(ndtri(0.5 + INTERVAL / 2.0)) * deviation
    return Band(average, spread, back(mean), back(mean - reach), back(mean + reach))

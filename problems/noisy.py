"""Any problem with Gaussian noise on its values, reproducibly.

    y(x) = f(x) + s_0 e_0(x),    y_l(x) = c_l(x) + s_l e_l(x),    l = 1..m,

where every e is a standard normal number. The noise is a function of the point and of a seed:
evaluating the same point again gives the same values, whatever was evaluated before and in which
batches. So runs can be resumed, replayed and verified, and repeating a point does not average the
noise out; two points that differ in the last bit have independent noise.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike

from cbo_suite.errors import InvalidTask
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, ConstrainedProblem, Evaluation


class Noisy(Problem):
    """Another problem seen through noise.

    Attributes:
        noise_free: The problem without noise, for scoring.
    """

    def __init__(
        self,
        problem: ConstrainedProblem,
        *,
        objective_noise: float,
        constraint_noise: ArrayLike = 0.0,
        seed: int = 0,
    ) -> None:
        """Put noise on a problem.

        Args:
            problem: The problem without noise.
            objective_noise: Standard deviation of the noise of the objective.
            constraint_noise: Standard deviation for all constraints, or one for each.
            seed: Another seed gives other noise.

        Raises:
            InvalidTask: A standard deviation is negative or not finite, or there are too many.
        """
        count = problem.space.num_constraints
        try:
            deviations = np.broadcast_to(np.asarray(constraint_noise, dtype=float), (count,))
        except (TypeError, ValueError) as error:
            raise InvalidTask(
                f"constraint_noise must be one number or {count} of them, got {constraint_noise!r}"
            ) from error
        self._deviation = np.concatenate([[float(objective_noise)], deviations])
        if not (np.isfinite(self._deviation) & (self._deviation >= 0.0)).all():
            raise InvalidTask(
                f"noise is a standard deviation, finite and not negative, got {self._deviation}"
            )
        self.noise_free = problem
        self.id = f"noisy-{problem.id}"
        self.space = problem.space
        self._seed = int(seed)

    def _evaluate(self, x: Array) -> Evaluation:
        """Add the noise of every point to its values."""
        exact = self.noise_free.evaluate(x)
        noise = np.array([self._noise(row) for row in x]).reshape(len(x), self._deviation.size)
        noise *= self._deviation
        return Evaluation(exact.objective + noise[:, 0], exact.constraints + noise[:, 1:])

    def _noise(self, point: Array) -> Array:
        """The standard normal numbers of one point `(d,)`: objective first, shape `(m + 1,)`."""
        # Adding zero makes one bit pattern of the two zeros.
        text = str(self._seed).encode() + b":" + (point + 0.0).astype("<f8").tobytes()
        words = np.frombuffer(hashlib.sha256(text).digest(), dtype="<u4")
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(words.tolist())))
        return generator.standard_normal(self._deviation.size)

"""Keane's bump function: a multi-modal surface whose optimum lies on a very steep constraint.

Minimise over [0, 10]^d, with d = 30 in the suite,

    f(x)  = -| (sum_i cos^4(x_i) - 2 prod_i cos^2(x_i)) / sqrt(sum_i i x_i^2) |
    c1(x) = 0.75 - prod_i x_i
    c2(x) = sum_i x_i - 7.5 d

The square root is taken as at least 1e-3, so that the origin has a finite value. This touches no
feasible point: a product of 0.75 keeps the square root far above that.

Almost every point of the box is feasible, and c1 reaches from 0.75 to -1e30: the worst scaling of
the suite. c1 is active at the optimum.

Best known. Only the denominator depends on the order of the coordinates, so that an optimum is
sorted in decreasing order. tests/golden/derive_witnesses.py descends from one start in each basin
(how many coordinates near 3 pi, 2 pi, pi, 1.5, and the rest) and solves the KKT conditions with 40
digits. That finds -0.80361910412558 for d = 20, the record of the problem known as G02
[Liang2006], and -0.82188439666787 for d = 30, which is the best found, not proved. The witnesses
for d = 10, 20, 30 and 50 are in the table below, with one coordinate near 2 pi for 30 and 50.

Feasible fraction. 1 - 4.6e-7 for d = 30, from the exact distributions of sum and product
(tests/golden/derive_feasible_fractions.py).

Where public versions disagree. [Mishra2007] reports -0.818056 for d = 30, and BoTorch uses it; it
is a local optimum with no coordinate near 2 pi, so that regret against it can be negative. The same
holds for d = 10 and d = 50. DIRECTGOLib has cos^4 in the product, others drop the minus sign of f.
BoTorch guards the square root as here, pymoo moves the lower bound to 1e-16.

References:
    [Keane1994] Keane: Experiences with optimizers in structural design. Adaptive Computing in
        Engineering Design and Control, Plymouth, 1994.
    [Liang2006] Liang, Runarsson, Mezura-Montes, Clerc, Suganthan, Coello Coello, Deb: Problem
        definitions and evaluation criteria for the CEC 2006 special session on constrained
        real-parameter optimization. Technical report, 2006.
    [Mishra2007] Mishra: Minimization of Keane's bump function by the repulsive particle swarm and
        the differential evolution methods. Working paper, 2007.
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021.

Version history:
    v1: First release.
"""

from __future__ import annotations

import numpy as np

from cbo_suite.errors import InvalidSpace
from cbo_suite.problems.base import Problem
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

LOWER, UPPER = 0.0, 10.0  # [SCBO]
MIN_PRODUCT = 0.75  # [SCBO]
MAX_MEAN = 7.5  # [SCBO]
MIN_ROOT = 1e-3  # as in BoTorch
MAX_DIM = 300  # the product of 10^300 is still a double

# Dimension to objective and point: tests/golden/derive_witnesses.py
# fmt: off
WITNESSES: dict[int, tuple[float, tuple[float, ...]]] = {
    10: (
        -0.7473103615261201,
        (
            3.1238903824684474, 3.0691548778722764, 3.014282325533124, 2.9575883710087623,
            1.4660413609449294, 0.3680585164028301, 0.3634823251728278, 0.3591206350107468,
            0.354954281240403, 0.350966645512858,
        ),
    ),
    20: (
        -0.803619104125588,
        (
            3.1624606473767254, 3.128331447119425, 3.0947921542739176, 3.0614506144767235,
            3.0279291899758696, 2.9938260823729266, 2.9586687334969493, 2.92184227634231,
            0.494825137288983, 0.48835710842498337, 0.48231642238289835, 0.47664472822438286,
            0.47129550974260837, 0.46623099944711266, 0.4614200528744752, 0.4568366419858345,
            0.45245876095142873, 0.4482676144671972, 0.4442470044215829, 0.440382858825982,
        ),
    ),
    30: (
        -0.8218843966678755,
        (
            6.264840643349545, 3.1503455269910488, 3.128091130468341, 3.1060904207056375,
            3.084237507209617, 3.06243165269921, 3.040573187994752, 3.0185595158642617,
            2.9962807504768874, 2.9736144514468315, 2.95041868367581, 2.9265221658645273,
            0.4766681098986489, 0.4730927887412505, 0.46964507948147266, 0.4663154742762403,
            0.4630955486313494, 0.459977797873171, 0.4569555039087023, 0.4540226257033524,
            0.45117370852443756, 0.4484038081740186, 0.4457084272999144, 0.44308346151818356,
            0.4405251535657688, 0.43803005407140033, 0.43559498781668254, 0.43321702457931954,
            0.4308934538224435, 0.4286217626295248,
        ),
    ),
    50: (
        -0.8352623483581589,
        (
            6.283579830517943, 3.1699376061508535, 3.156074591399364, 3.1423609971214956,
            3.128769578385654, 3.1152748997514847, 3.101852886677813, 3.088480434278751,
            3.0751350549665233, 3.0617945496994987, 3.0484366893955475, 3.035038893818852,
            3.021577894997175, 3.0080293709391346, 2.9943675329203048, 2.9805646455394306,
            2.9665904525052147, 2.9524114717003167, 2.937990108838913, 2.9232835172463685,
            0.4882374011013503, 0.48593368945548077, 0.483682813534371, 0.48148220247906554,
            0.4793294794967899, 0.4772224421874301, 0.4751590453491694, 0.4731373858928601,
            0.4711556895582855, 0.46921229917679236, 0.4673056642664483, 0.4654343317799144,
            0.4635969378531599, 0.4617922004262022, 0.46001891262616257, 0.45827593681884926,
            0.4565621992483904, 0.45487668519562224, 0.4532184345953668, 0.4515865380607154,
            0.4499801332692112, 0.44839840167160583, 0.4468405654888043, 0.4453058849668555,
            0.4437936558634916, 0.4423032071428705, 0.44083389885790125, 0.43938512020189713,
            0.4379562877133593, 0.4365468436194906,
        ),
    ),
}
# fmt: on

# tests/golden/derive_feasible_fractions.py
FEASIBLE_FRACTIONS = {10: 0.99687, 20: 0.9999650, 30: 0.99999954, 50: 0.99999999990}


class Keane(Problem):
    """Keane's bump function: any d from 2, m = 2."""

    def __init__(self, dim: int = 30) -> None:
        """Set up the problem in `dim` dimensions, from 2 to 300.

        Raises:
            InvalidSpace: `dim` is out of that range.
        """
        if not 2 <= dim <= MAX_DIM:
            raise InvalidSpace(f"Keane needs 2 <= dim <= {MAX_DIM}, got {dim}")
        self.id = f"keane-{dim}d-v1"
        self.space = Space(np.full(dim, LOWER), np.full(dim, UPPER), num_constraints=2)
        if dim in WITNESSES:
            objective, x = WITNESSES[dim]
            source = "best of all basins, KKT with 40 digits, tests/golden/derive_witnesses.py"
            self.best_known = BestKnown(objective, np.array(x), source)
        self.feasible_fraction = FEASIBLE_FRACTIONS.get(dim)

    def _evaluate(self, x: Array) -> Evaluation:
        """Evaluate valid points of shape `(n, d)`; the formula is [Keane1994] in [SCBO]."""
        weights = np.arange(1, self.space.dim + 1)
        cosines = np.square(np.cos(x))
        numerator = np.square(cosines).sum(axis=1) - 2 * cosines.prod(axis=1)
        root = np.sqrt((weights * np.square(x)).sum(axis=1))
        constraints = np.column_stack(
            (MIN_PRODUCT - x.prod(axis=1), x.sum(axis=1) - MAX_MEAN * self.space.dim)
        )
        return Evaluation(-np.abs(numerator / np.maximum(root, MIN_ROOT)), constraints)

"""The problems of the suite, one problem or family per file.

This table is all that listing needs: it imports none of the problems. A row never changes once
published; a change of any value, bound, constant or protocol is a new version in a new row.

The protocols (budget, batch size, points of the initial design) are those of the SCBO paper
(Eriksson and Poloczek, 2021); where its text gives none the comment says so. Those of the G
problems and of what follows them are ours.
"""

from __future__ import annotations

from cbo_suite.protocols import FamilyEntry, ProblemEntry, RunProtocol


def _sequential(dim: int) -> RunProtocol:
    """The protocol of problems from elsewhere: as many evaluations as a model-based run affords."""
    return RunProtocol(100 if dim <= 10 else 200, 1, max(10, 2 * dim))


def _g_problem(name: str, dim: int, num_constraints: int, title: str) -> ProblemEntry:
    """Write the row of a G problem."""
    target = f"cbo_suite.problems.g_problems{'.large' if name in ('G16', 'G19') else ''}:{name}"
    return ProblemEntry(target, dim, num_constraints, title, _sequential(dim))


def _bbob_constrained(k: int, d: int, j: int) -> ProblemEntry:
    """Write the row of COCO's constrained function k in d variables, instance j."""
    sizes = (1, 3, 9, 9 + 3 * d // 4, 9 + 3 * d // 2, 9 + 9 * d // 2)
    return ProblemEntry(
        "cbo_suite.problems.bbob_constrained:BbobConstrained",
        d,
        sizes[(k - 1) % 6],
        f"COCO's constrained function {k}, instance {j}",
        _sequential(d),
        extra="coco",
        options={"function": k, "dim": d, "instance": j},
        seconds=2e-5 * d,
    )


FAMILIES: tuple[FamilyEntry, ...] = (
    FamilyEntry(
        "bbob-constrained-f{k}-{d}d-i{j}-v1",
        {"k": range(1, 55), "d": (2, 3, 5, 10, 20, 40), "j": range(1, 16)},
        "COCO's constrained functions",
        ("2 to 40", "1 to 189"),
        _bbob_constrained,
    ),
)

PROBLEMS: dict[str, ProblemEntry] = {
    "tension-string-3d-v1": ProblemEntry(
        "cbo_suite.problems.tension_string:TensionString",
        3,
        4,
        "Tension-compression string",
        RunProtocol(100, 1, 10),
    ),
    "pressure-vessel-4d-v1": ProblemEntry(
        "cbo_suite.problems.pressure_vessel:PressureVessel",
        4,
        4,
        "Pressure vessel",
        RunProtocol(100, 1, 10),
    ),
    "welded-beam-4d-v1": ProblemEntry(
        "cbo_suite.problems.welded_beam:WeldedBeam",
        4,
        5,
        "Welded beam",
        RunProtocol(100, 1, 10),
    ),
    "speed-reducer-7d-v1": ProblemEntry(
        "cbo_suite.problems.speed_reducer:SpeedReducer",
        7,
        11,
        "Speed reducer",
        RunProtocol(100, 1, 10),
    ),
    "ackley-10d-v1": ProblemEntry(
        "cbo_suite.problems.ackley:Ackley",
        10,
        2,
        "Ackley in half a ball",
        RunProtocol(200, 1, 10),
        options={"dim": 10},
    ),
    "keane-30d-v1": ProblemEntry(
        "cbo_suite.problems.keane:Keane",
        30,
        2,
        "Keane bump",
        # The budget is ours, the paper's text gives none.
        RunProtocol(1000, 50, 100),
        options={"dim": 30},
    ),
    "toy-2d-v1": ProblemEntry(
        "cbo_suite.problems.toy:Toy",
        2,
        2,
        "Toy with a wavy feasible set",
        # The budget is ours, the paper's text gives none.
        RunProtocol(100, 1, 10),
    ),
    "rosenbrock-5d-v1": ProblemEntry(
        "cbo_suite.problems.rosenbrock:Rosenbrock",
        5,
        2,
        "Rosenbrock under Dixon-Price and Levy",
        # The budget is ours, the paper's text gives none.
        RunProtocol(100, 1, 10),
        options={"dim": 5},
    ),
    "lunar-lander-m10-v1": ProblemEntry(
        "cbo_suite.problems.lunar_lander:LunarLander",
        12,
        10,
        "Lunar lander on 10 terrains",
        RunProtocol(1000, 50, 50),
        extra="lunar",
        options={"terrains": 10},
        seconds=0.04,
    ),
    "lunar-lander-m30-v1": ProblemEntry(
        "cbo_suite.problems.lunar_lander:LunarLander",
        12,
        30,
        "Lunar lander on 30 terrains",
        RunProtocol(1000, 50, 50),
        extra="lunar",
        options={"terrains": 30},
        seconds=0.12,
    ),
    "lunar-lander-m50-v1": ProblemEntry(
        "cbo_suite.problems.lunar_lander:LunarLander",
        12,
        50,
        "Lunar lander on 50 terrains",
        RunProtocol(1000, 50, 50),
        extra="lunar",
        options={"terrains": 50},
        seconds=0.2,
    ),
    "rover-60d-v1": ProblemEntry(
        "cbo_suite.problems.rover:Rover",
        60,
        15,
        "Rover among trees and 15 stones",
        RunProtocol(5000, 100, 100),
    ),
    "rover-60d-alt-v1": ProblemEntry(
        "cbo_suite.problems.rover:Rover",
        60,
        15,
        "Rover among trees and 15 stones, layout of FuRBO",
        RunProtocol(5000, 100, 100),
        options={"layout": "furbo"},
    ),
    "mopta08-124d-v1": ProblemEntry(
        "cbo_suite.problems.mopta08:Mopta08",
        124,
        68,
        "Vehicle design, by its own executable",
        RunProtocol(2000, 10, 130),
        seconds=0.1,
    ),
    "vehicle-124d-v1": ProblemEntry(
        "cbo_suite.problems.vehicle:Vehicle",
        124,
        68,
        "Synthetic vehicle body",
        # Not in the paper: as its vehicle problem.
        RunProtocol(2000, 10, 130),
    ),
    "g01-13d-v1": _g_problem("G01", 13, 9, "G01: quadratic, linear constraints"),
    "g02-20d-v1": _g_problem("G02", 20, 2, "G02: Keane bump"),
    "g04-5d-v1": _g_problem("G04", 5, 6, "G04: Himmelblau's quadratic problem"),
    "g06-2d-v1": _g_problem("G06", 2, 2, "G06: cubic on a sliver between two circles"),
    "g07-10d-v1": _g_problem("G07", 10, 8, "G07: quadratic, quadratic constraints"),
    "g08-2d-v1": _g_problem("G08", 2, 2, "G08: waves with an inner optimum"),
    "g09-7d-v1": _g_problem("G09", 7, 4, "G09: polynomial of the sixth degree"),
    "g10-8d-v1": _g_problem("G10", 8, 6, "G10: heat exchanger"),
    "g12-3d-v1": _g_problem("G12", 3, 1, "G12: quadratic on 729 balls"),
    "g16-5d-v1": _g_problem("G16", 5, 38, "G16: chemical plant"),
    "g18-9d-v1": _g_problem("G18", 9, 13, "G18: largest hexagon of unit diameter"),
    "g19-15d-v1": _g_problem("G19", 15, 5, "G19: cubic programme"),
    "g24-2d-v1": _g_problem("G24", 2, 2, "G24: linear on two pieces"),
    "failing-g19-15d-v1": ProblemEntry(
        "cbo_suite.problems.failing:FailingG19",
        15,
        5,
        "G19 with a hidden constraint: 42 % of the box fail",
        _sequential(15),
    ),
}

"""The problems of the suite, one problem or family per file.

This table is all that listing needs: it imports none of the problems. A row never changes once
published; a change of any value, bound or constant is a new version in a new row.
"""

from __future__ import annotations

from cbo_suite.protocols import ProblemEntry

PROBLEMS: dict[str, ProblemEntry] = {
    "tension-string-3d-v1": ProblemEntry(
        "cbo_suite.problems.tension_string:TensionString", 3, 4, "Tension-compression string"
    ),
    "pressure-vessel-4d-v1": ProblemEntry(
        "cbo_suite.problems.pressure_vessel:PressureVessel", 4, 4, "Pressure vessel"
    ),
    "welded-beam-4d-v1": ProblemEntry(
        "cbo_suite.problems.welded_beam:WeldedBeam", 4, 5, "Welded beam"
    ),
    "speed-reducer-7d-v1": ProblemEntry(
        "cbo_suite.problems.speed_reducer:SpeedReducer", 7, 11, "Speed reducer"
    ),
    "ackley-10d-v1": ProblemEntry(
        "cbo_suite.problems.ackley:Ackley", 10, 2, "Ackley in half a ball", options={"dim": 10}
    ),
    "keane-30d-v1": ProblemEntry(
        "cbo_suite.problems.keane:Keane", 30, 2, "Keane bump", options={"dim": 30}
    ),
    "toy-2d-v1": ProblemEntry("cbo_suite.problems.toy:Toy", 2, 2, "Toy with a wavy feasible set"),
    "rosenbrock-5d-v1": ProblemEntry(
        "cbo_suite.problems.rosenbrock:Rosenbrock",
        5,
        2,
        "Rosenbrock under Dixon-Price and Levy",
        options={"dim": 5},
    ),
    "mopta08-124d-v1": ProblemEntry(
        "cbo_suite.problems.mopta08:Mopta08", 124, 68, "Vehicle design, by its own executable"
    ),
    "vehicle-124d-v1": ProblemEntry(
        "cbo_suite.problems.vehicle:Vehicle", 124, 68, "Synthetic vehicle body"
    ),
}

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
    "lunar-lander-m10-v1": ProblemEntry(
        "cbo_suite.problems.lunar_lander:LunarLander",
        12,
        10,
        "Lunar lander on 10 terrains",
        extra="lunar",
        options={"terrains": 10},
    ),
    "lunar-lander-m30-v1": ProblemEntry(
        "cbo_suite.problems.lunar_lander:LunarLander",
        12,
        30,
        "Lunar lander on 30 terrains",
        extra="lunar",
        options={"terrains": 30},
    ),
    "lunar-lander-m50-v1": ProblemEntry(
        "cbo_suite.problems.lunar_lander:LunarLander",
        12,
        50,
        "Lunar lander on 50 terrains",
        extra="lunar",
        options={"terrains": 50},
    ),
    "rover-60d-v1": ProblemEntry(
        "cbo_suite.problems.rover:Rover", 60, 15, "Rover among trees and 15 stones"
    ),
    "rover-60d-alt-v1": ProblemEntry(
        "cbo_suite.problems.rover:Rover",
        60,
        15,
        "Rover among trees and 15 stones, layout of FuRBO",
        options={"layout": "furbo"},
    ),
    "mopta08-124d-v1": ProblemEntry(
        "cbo_suite.problems.mopta08:Mopta08", 124, 68, "Vehicle design, by its own executable"
    ),
    "vehicle-124d-v1": ProblemEntry(
        "cbo_suite.problems.vehicle:Vehicle", 124, 68, "Synthetic vehicle body"
    ),
}

"""Write golden values of the rover and the lunar lander into problems.json, from other code.

Run from the root of the repository with the extra `lunar`, about a minute:

    python -m tests.golden.derive_control_values

Nothing of the problems' own code runs here. The rover's path is FITPACK's smoothing spline, as in
the code of Wang et al. (2018), and every sample is tested against every tree. The lunar lander is
`gymnasium.make("LunarLander-v3")` with its module's constant set, flown by a transcription of the
heuristic that ships with it; its values hold for Box2D on linux-x86_64. Entries of other problems
stay as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.box2d import lunar_lander
from scipy.interpolate import splev, splprep

FOLDER = Path(__file__).parents[2] / "problems"
MAP = json.loads((FOLDER / "rover_map.json").read_text(encoding="utf-8"))
TARGET = Path(__file__).with_name("problems.json")
HEURISTIC = [0.5, 1, 0.4, 0.55, 0.5, 1, 0.5, 0.5, 0, 0.5, 0.05, 0.05]

Vector = np.ndarray[Any, np.dtype[np.float64]]
Row = dict[str, Any]


def rover(x: Vector, stones: list[list[float]]) -> tuple[float, list[float]]:
    """Return objective and constraints of one point `(60,)`."""
    start, goal = MAP["start"], MAP["goal"]
    points = np.vstack([start, (1.2 * x - 0.1).reshape(30, 2), goal])
    spline: Any = splprep(points.T, k=3)[0]
    for axis in (0, 1):
        spline[1][axis][0], spline[1][axis][-1] = start[axis], goal[axis]
    path = np.array(splev(np.linspace(0, 1, 1000), spline)).T
    density = []
    for px, py in path:
        costly = not (0 <= px < 1 and 0 <= py < 1)
        for tx, ty in MAP["tree_centres"]:
            costly |= tx - 0.025 <= px < tx + 0.025 and ty - 0.025 <= py < ty + 0.025
        density.append(20.05 if costly else 0.05)
    cost = 0.0
    for k in range(999):
        cost += float(np.linalg.norm(path[k + 1] - path[k])) * (density[k] + density[k + 1]) / 2
    return cost - 5.0, [max(depth(p, np.array(stone)) for p in path) for stone in stones]


def depth(point: Vector, stone: Vector) -> float:
    """Return how deep a point lies in a stone; minus its distance from it outside."""
    low, high = stone - 0.05, stone + 0.05
    if (point > low).all() and (point < high).all():
        return float(min((point - low).min(), (high - point).min()))
    return -float(np.linalg.norm(point - np.clip(point, low, high)))


def lander(w: Vector, terrains: int) -> tuple[float, list[float]]:
    """Return objective and constraints of one point `(12,)`."""
    lunar_lander.INITIAL_RANDOM = 1500.0
    rewards = []
    for terrain in range(terrains):
        environment = gymnasium.make("LunarLander-v3")
        s, _ = environment.reset(seed=terrain)
        reward, over = 0.0, False
        while not over:
            s, gain, terminated, truncated, _ = environment.step(action(w, s.astype(float)))
            reward, over = reward + gain, terminated or truncated
        rewards.append(float(reward))
    return -float(np.mean(rewards)), [200.0 - reward for reward in rewards]


def action(w: Vector, s: Vector) -> int:
    """Return what the controller does in a state `(8,)`."""
    angle_todo = (np.clip(w[0] * s[0] + w[1] * s[2], -w[2], w[2]) - s[4]) * w[4] - s[5] * w[5]
    hover_todo = (w[3] * np.abs(s[0]) - s[1]) * w[6] - s[3] * w[7]
    if s[6] or s[7]:
        angle_todo, hover_todo = w[8], -s[3] * w[9]
    if hover_todo > np.abs(angle_todo) and hover_todo > w[10]:
        return 2
    return 3 if angle_todo < -w[11] else 1 if angle_todo > w[11] else 0


def row(x: Vector, value: tuple[float, list[float]]) -> Row:
    """Return one entry of the file."""
    return {"x": x.tolist(), "objective": value[0], "constraints": value[1]}


def main() -> None:
    """Evaluate a few points of each problem and replace its entry."""
    random = np.random.default_rng(2021)
    straight = (np.linspace([0.05, 0.05], [0.95, 0.95], 32)[1:-1].ravel() + 0.1) / 1.2
    table: dict[str, list[Row]] = json.loads(TARGET.read_text(encoding="utf-8"))
    for layout, id_ in (("default", "rover-60d-v1"), ("furbo", "rover-60d-alt-v1")):
        stones = MAP["stone_centres"][layout]
        points = [straight, *random.random((4, 60)), *random.beta(0.2, 0.2, (2, 60))]
        table[id_] = [row(x, rover(x, stones)) for x in points]
    for terrains in (10, 30, 50):
        id_ = f"lunar-lander-m{terrains}-v1"
        near = np.clip(np.array(HEURISTIC) * random.uniform(0.8, 1.25, (2, 12)), 0, 2)
        points = [np.array(HEURISTIC), *near, *random.uniform(0, 2, (2, 12))]
        table[id_] = [row(x, lander(x, terrains)) for x in points]
    TARGET.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

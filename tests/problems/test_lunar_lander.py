"""The lunar lander: stated values, determinism, the user's gymnasium, and its pictures."""

from __future__ import annotations

import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cbo_suite.errors import InvalidPoint, InvalidSpace, InvalidTask, MissingExtra
from cbo_suite.journal import read_journal
from cbo_suite.problems import lunar_lander
from cbo_suite.problems.lunar_lander import HEURISTIC, LunarLander, flight
from cbo_suite.problems.lunar_lander.flight import film, fly, simulator
from cbo_suite.protocols import Array
from cbo_suite.registry import make_problem

# Importing Box2D to see whether it is there would turn its warnings into errors, and crash.
if find_spec("Box2D") is None:
    pytest.skip("needs the extra lunar", allow_module_level=True)

SIZES = (10, 30, 50)
# Box2D computes in single precision and landings are chaotic, so that values are pinned to one
# family of processors.
same_platform = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="values are recorded on linux-x86_64",
)


def near_heuristic(n: int) -> Array:
    """Return points `(n, 12)` around the heuristic, the kind that lands now and then."""
    factors = np.random.default_rng(5).uniform(0.7, 1.4, (n, 12))
    return np.clip(np.array(HEURISTIC) * factors, 0.0, 2.0)


@same_platform
def test_heuristic_has_the_stated_rewards() -> None:
    """The controller that ships with the simulator is feasible for ten terrains only."""
    rewards = {}
    for m in SIZES:
        evaluation = make_problem(f"lunar-lander-m{m}-v1").evaluate(np.array([HEURISTIC]))
        rewards[m] = -evaluation.objective[0]
        assert evaluation.feasible[0] == (m == 10)
        assert rewards[m] == pytest.approx(200 - evaluation.constraints[0].mean(), abs=1e-9)
    assert rewards == pytest.approx({10: 277.734704, 30: 234.035684, 50: 238.409919}, abs=1e-6)


def test_terrains_are_nested() -> None:
    """The first ten constraints of m = 30 are those of m = 10."""
    x = near_heuristic(2)
    small, large = LunarLander(10).evaluate(x), LunarLander(30).evaluate(x)
    np.testing.assert_array_equal(small.constraints, large.constraints[:, :10])


@same_platform
@pytest.mark.parametrize(("m", "reward"), [(10, 305.0), (30, 305.0), (50, 305.0)])
def test_best_known_is_good(m: int, reward: float) -> None:
    """The best known controllers land well on every terrain."""
    best = LunarLander(m).best_known
    assert best is not None
    assert -best.objective > reward


def test_the_versions_of_the_simulator_are_on_record(tmp_path: Path) -> None:
    """Also before the first flight, and where other processes fly."""
    journal = tmp_path / "run.jsonl"
    script = (
        "import sys, cbo_suite\n"
        "cbo_suite.run('lunar-lander-m10-v1', 'random-search', budget=1, journal=sys.argv[1])\n"
    )
    subprocess.run([sys.executable, "-c", script, str(journal)], check=True)
    contents = read_journal(journal)
    assert contents is not None
    for library in ("gymnasium", "Box2D"):
        assert contents.header.versions[library] == version(library)


def test_same_bits_in_a_fresh_process() -> None:
    """Another process that flies in another order gets the same rewards."""
    x = near_heuristic(3)
    here = [fly(weights, terrain).hex() for weights in x.tolist() for terrain in (0, 7, 4)]
    script = (
        "import sys, json\n"
        "from cbo_suite.problems.lunar_lander.flight import fly\n"
        "flights = [(w, t) for w in json.loads(sys.argv[1]) for t in (0, 7, 4)]\n"
        "rewards = [fly(w, t).hex() for w, t in reversed(flights)]\n"
        "print(*reversed(rewards))\n"
    )
    command = [sys.executable, "-c", script, str(x.tolist())]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert there == here


def test_same_bits_in_threads() -> None:
    """Threads that fly at the same time do not disturb each other."""
    flights = [(weights, terrain) for weights in near_heuristic(2).tolist() for terrain in range(4)]
    with ThreadPoolExecutor(4) as threads:
        rewards = list(threads.map(lambda flight: fly(*flight), flights))
    assert rewards == [fly(*flight) for flight in flights]


def test_agrees_with_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registered environment gives the same rewards, time limit and all."""
    simulator()  # imports Box2D, whose warnings are errors here
    import gymnasium
    from gymnasium.envs.box2d import lunar_lander as theirs

    monkeypatch.setattr(theirs, "INITIAL_RANDOM", 1500.0)
    environment = gymnasium.make("LunarLander-v3")
    # The second point hovers until the time is up; others land, crash or leave the map.
    hover = np.array([0.5, 1.0, 0.4, 2.0, 0.5, 1.0, 2.0, 2.0, 0.0, 0.5, 0.0, 0.05])
    anywhere = np.random.default_rng(1).uniform(0.0, 2.0, (20, 12))
    flights = [(np.array(HEURISTIC), 3), (hover, 0), (near_heuristic(1)[0], 11)]
    ends = set()
    for weights, terrain in [*flights, *zip(anywhere, range(20), strict=True)]:
        state, _ = environment.reset(seed=terrain)
        reward, steps, over = 0.0, 0, False
        while not over:
            action = flight._action(weights.tolist(), state.tolist())
            state, gain, terminated, truncated, _ = environment.step(action)
            reward, steps, over = reward + gain, steps + 1, terminated or truncated
        assert fly(weights.tolist(), terrain) == reward, (terrain, steps)
        ends.add("time" if not terminated else "rest" if gain > 0 else abs(state[0]) >= 1.0)
    assert ends == {"time", "rest", True, False}


def test_controller_is_gymnasiums_at_the_heuristic() -> None:
    """At the heuristic's weights every state leads to the heuristic's action."""
    simulator()  # imports Box2D, whose warnings are errors here
    from gymnasium.envs.box2d.lunar_lander import heuristic

    class Discrete:
        """The only thing the heuristic asks of its environment."""

        continuous = False

        @property
        def unwrapped(self) -> Discrete:
            return self

    random = np.random.default_rng(0)
    states = random.normal(0.0, 0.5, (2000, 8))
    states[:, 6:] = random.random((2000, 2)) < 0.1
    ours = [flight._action(HEURISTIC, state) for state in states.tolist()]
    assert ours == [heuristic(Discrete(), state) for state in states]
    assert set(ours) == {0, 1, 2, 3}


def test_gymnasium_of_the_user_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither do we change the constant, nor does the user's own value change our rewards."""
    before = fly(HEURISTIC, 1)
    from gymnasium.envs.box2d import lunar_lander as theirs

    assert theirs.INITIAL_RANDOM == 1000.0
    monkeypatch.setattr(theirs, "INITIAL_RANDOM", 1.0)
    assert fly(HEURISTIC, 1) == before
    assert simulator() is not theirs
    assert simulator().INITIAL_RANDOM == 1500.0


def test_bad_points_are_refused_before_anything_flies(monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN and points outside the box never reach the simulator."""
    flown: list[object] = []
    monkeypatch.setattr(lunar_lander, "fly_all", lambda *flights: flown.append(flights))
    for value in (np.nan, -0.1, 2.1):
        with pytest.raises(InvalidPoint, match="inside the box"):
            LunarLander().evaluate(np.full((1, 12), value))
    assert not flown


@pytest.mark.parametrize("library", ["gymnasium", "Box2D"])
def test_missing_library_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making the problem says what to install; so does flying after all."""
    monkeypatch.setitem(sys.modules, library, None)
    line = r'pip install "cbo-suite\[lunar\]"'
    with pytest.raises(MissingExtra, match=rf"lunar-lander-m10-v1 needs {library}.*{line}"):
        make_problem("lunar-lander-m10-v1")
    with pytest.raises(MissingExtra, match=line):
        simulator.__wrapped__()


def test_senseless_options_are_refused() -> None:
    """No terrain or no worker makes no problem."""
    with pytest.raises(InvalidSpace, match="at least 1 terrain, got 0"):
        LunarLander(0)
    with pytest.raises(InvalidTask, match=r"workers must be at least 1.*got 0"):
        LunarLander(10, workers=0)


def test_film_shows_the_flight_that_counts() -> None:
    """Drawing changes nothing: the last frame has the reward of the evaluation."""
    for terrain in (0, 5):
        frames = film(HEURISTIC, terrain, every=4)
        assert frames[-1].reward == fly(HEURISTIC, terrain)
        assert frames[0].image.shape == (400, 600, 3)
        assert np.ptp(frames[0].image) == 255
        np.testing.assert_allclose(np.diff([frame.seconds for frame in frames[:-1]]), 0.08)


def test_render_writes_an_animation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GIF plays in real time; it is what one gets without naming a file."""
    from PIL import Image, ImageSequence

    monkeypatch.chdir(tmp_path)
    file = LunarLander().render(HEURISTIC, 3)
    assert file.name == "lunar-lander-m10-v1-terrain-3.gif"
    with Image.open(file) as image:
        assert image.size == (600, 436)
        milliseconds = sum(frame.info["duration"] for frame in ImageSequence.Iterator(image))
    frames = film(HEURISTIC, 3, every=4)
    # The last frame stays for two seconds.
    assert milliseconds == 80 * (len(frames) - 1) + 2000
    assert milliseconds / 1000 == pytest.approx(frames[-1].seconds + 2, abs=0.08)


def test_render_writes_a_strip(tmp_path: Path) -> None:
    """A PNG holds eight frames; each has black sky above white ground, and they differ."""
    from PIL import Image

    file = LunarLander().render(np.array([HEURISTIC]), 3, tmp_path / "landing.png")
    with Image.open(file) as image:
        pixels = np.asarray(image)
    assert pixels.shape == (2 * 436 + 6, 4 * 600 + 18, 3)
    frames = [pixels[r * 442 :, c * 606 :][:400, :600] for r in (0, 1) for c in range(4)]
    for frame in frames:
        assert frame[0, 0].tolist() == [0, 0, 0]
        assert frame[395, 300].tolist() == [255, 255, 255]
    assert len({frame.tobytes() for frame in frames}) == 8


def test_render_refuses_what_it_cannot_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad points, unknown terrains and a missing Pillow are named, and no file is left."""
    file = tmp_path / "landing.gif"
    with pytest.raises(InvalidPoint):
        LunarLander().render(np.full(12, 3.0), 0, file)
    with pytest.raises(InvalidTask, match="terrain must be 0 to 9 in lunar-lander-m10-v1, got 10"):
        LunarLander().render(HEURISTIC, 10, file)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r'PIL, which.* pip install "cbo-suite\[plots\]"'):
        LunarLander().render(HEURISTIC, 0, file)
    assert not file.exists()

"""Lunar lander: one controller with twelve weights that must land on each of m terrains (12D).

Minimise over w in [0, 2]^12, with m = 10, 30 or 50 in the suite,

    f(w)   = -(R_0 + ... + R_(m-1)) / m
    c_i(w) = 200 - R_(i-1),  i = 1, ..., m,

where R_i is the reward of one flight on terrain i; from 200 on a landing counts as a success. The
paper [SCBO] maximises the mean reward under R_i >= 200.

Flight. LunarLander-v3 of [Gymnasium] on the physics of Box2D with discrete actions, no wind and an
initial random force of up to 1500 instead of 1000 [TuRBO]. Terrain i is `reset(seed=i)`: the seed
fixes the ground, the initial force and the noise of the engines, so that a flight is a
deterministic function of w, and the terrains of m = 10 are the first of m = 30 and m = 50. A flight
ends when the lander crashes, leaves the map, comes to rest, or after 1000 steps, the limit of
LunarLander-v3. The controller is in `cbo_suite.problems.lunar_lander.flight`; the heuristic that
ships with the simulator is the point `HEURISTIC` of this module.

Where public versions disagree. [SCBO] fixes its terrains but not in public, and used version 2,
whose worlds were not rebuilt at reset, so that a flight depended on those before it; its rewards
cannot be reproduced seed by seed. Other public versions allow 2000 steps or draw new terrains at
every evaluation.

Platform. Box2D computes in single precision, and a flight is chaotic once the legs touch the
ground. The same point has the same bits in any order and process, and whichever instructions of
x86-64 a processor has; another architecture, build of Box2D or mathematical library of the system
(it calls sinf, cosf and atan2f) may give other rewards.

Best known. CMA-ES from the heuristic, see `tests/golden/derive_lunar_witnesses.py`.

References:
    [SCBO] Eriksson, Poloczek: Scalable constrained Bayesian optimization. AISTATS 2021.
    [TuRBO] Eriksson, Pearce, Gardner, Turner, Poloczek: Scalable global optimization via local
        Bayesian optimization. NeurIPS 2019. Controller and initial force: readme of its code.
    [Gymnasium] Towers et al.: Gymnasium: a standard interface for reinforcement learning
        environments. arXiv 2407.17032, 2024.

Version history:
    v1: First release.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cbo_suite.errors import InvalidSpace, InvalidTask, MissingExtra
from cbo_suite.problems.base import Problem
from cbo_suite.problems.lunar_lander.flight import STEPS_PER_SECOND, Frame, film
from cbo_suite.problems.lunar_lander.workers import fly_all
from cbo_suite.protocols import Array, BestKnown, Evaluation, Space

if TYPE_CHECKING:
    from PIL.Image import Image

SUCCESS = 200.0  # [SCBO]
HEURISTIC = (0.5, 1.0, 0.4, 0.55, 0.5, 1.0, 0.5, 0.5, 0.0, 0.5, 0.05, 0.05)  # [Gymnasium]
FILM_STEP = 4  # one frame in this number of steps of an animation, which plays in real time
CAPTION = 36  # pixels below a frame
STRIP = (4, 2)  # columns and rows of frames in a strip


class LunarLander(Problem):
    """The lunar lander on a number of terrains: d = 12, any m."""

    cheap: ClassVar[bool] = False
    libraries: ClassVar[tuple[str, ...]] = ("gymnasium", "Box2D")

    def __init__(self, terrains: int = 10, workers: int | None = None) -> None:
        """Set up the problem.

        Args:
            terrains: Number m of terrains, at least 1.
            workers: Number of processes that fly; 1 flies in this process, None takes one for each
                core where it pays. The values are the same.

        Raises:
            InvalidSpace: `terrains` is below 1.
            InvalidTask: `workers` is below 1.
            MissingExtra: gymnasium or Box2D is not installed.
        """
        if terrains < 1:
            raise InvalidSpace(f"the lunar lander needs at least 1 terrain, got {terrains}")
        if workers is not None and workers < 1:
            raise InvalidTask(f"workers must be at least 1, or None for all cores, got {workers}")
        self.id = f"lunar-lander-m{terrains}-v1"
        for library in self.libraries:
            if find_spec(library) is None:
                raise MissingExtra.of(self.id, library, "lunar")
        self.space = Space(np.zeros(12), np.full(12, 2.0), num_constraints=terrains)
        self.workers = workers
        file = Path(__file__).with_name("best_known.json")
        known = json.loads(file.read_text(encoding="utf-8")).get(self.id)
        if known is not None:
            self.best_known = BestKnown(
                known["objective"],
                np.array(known["x"]),
                known.get("source", "tests/golden/derive_lunar_witnesses.py"),
            )

    def _evaluate(self, x: Array) -> Evaluation:
        """Fly every point on every terrain."""
        terrains = self.space.num_constraints
        flights = [(weights, terrain) for weights in x.tolist() for terrain in range(terrains)]
        rewards = np.array(fly_all(flights, self.workers), dtype=float).reshape(-1, terrains)
        return Evaluation(-rewards.mean(axis=1), SUCCESS - rewards)

    def render(self, x: ArrayLike, terrain: int, file: str | Path | None = None) -> Path:
        """Show how one point flies over one terrain.

        Args:
            x: The point, shape `(12,)`.
            terrain: Number of the terrain, 0 to m - 1.
            file: Where to write: a name that ends in ".gif" gets an animation in real time, any
                other suffix of a picture, such as ".png", a strip of frames. None writes an
                animation into the working directory, named after problem and terrain.

        Returns:
            The file written.

        Raises:
            InvalidPoint: `x` is not one valid point.
            InvalidTask: There is no such terrain.
            MissingExtra: pygame or Pillow is not installed.
        """
        (weights,) = self.space.validate(np.reshape(x, (1, -1))).tolist()
        if terrain not in range(self.space.num_constraints):
            raise InvalidTask(
                f"terrain must be 0 to {self.space.num_constraints - 1} in {self.id}, got {terrain}"
            )
        for library, extra in (("PIL", "plots"), ("pygame", "lunar")):
            if find_spec(library) is None:
                raise MissingExtra.of("LunarLander.render", library, extra)
        path = Path(file or f"{self.id}-terrain-{terrain}.gif")
        frames = film(weights, terrain, every=FILM_STEP)
        if path.suffix.lower() == ".gif":
            _save_animation([_label(frame, terrain) for frame in frames], path)
        else:
            columns, rows = STRIP
            chosen = np.linspace(0, len(frames) - 1, columns * rows).round().astype(int)
            _save_strip([_label(frames[i], terrain) for i in chosen], columns, path)
        return path


def _label(frame: Frame, terrain: int) -> Image:
    """Return a frame as an image with time and reward written below it."""
    from PIL import Image, ImageDraw, ImageFont

    height, width, _ = frame.image.shape
    image = Image.new("RGB", (width, height + CAPTION), "#22304f")
    image.paste(Image.fromarray(frame.image), (0, 0))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size=22)
    texts = (f"terrain {terrain}", f"{frame.seconds:.1f} s", f"reward {frame.reward:.1f}")
    for text, place, anchor in zip(texts, (14, width // 2, width - 14), "lmr", strict=True):
        draw.text(
            (place, height + CAPTION // 2), text, fill="white", font=font, anchor=anchor + "m"
        )
    return image


def _save_animation(images: list[Image], path: Path) -> None:
    """Write images as an endless animation that rests on the last one for two seconds."""
    durations = [1000 * FILM_STEP // STEPS_PER_SECOND] * (len(images) - 1) + [2000]
    first, *others = (image.quantize(64) for image in images)
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0)


def _save_strip(images: list[Image], columns: int, path: Path) -> None:
    """Write images side by side, in rows that are read from left to right."""
    from PIL import Image

    gap, (width, height) = 6, images[0].size
    rows = -(-len(images) // columns)
    size = (columns * (width + gap) - gap, rows * (height + gap) - gap)
    strip = Image.new("RGB", size, "white")
    for i, image in enumerate(images):
        strip.paste(image, (i % columns * (width + gap), i // columns * (height + gap)))
    strip.save(path)

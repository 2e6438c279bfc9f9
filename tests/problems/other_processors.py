"""Values of problems as other processors compute them, by other kernels of the same libraries.

    python -m tests.problems.other_processors --count 60000 rover-60d-v1 rover-60d-alt-v1

prints by which part of its size a value differs at most from what this processor gives. NumPy, its
linear algebra (OpenBLAS) and the mathematical library (glibc) choose their kernels by the
processor; environment variables make them choose those of an older one.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

import cbo_suite as cbo
from cbo_suite.protocols import ConstrainedProblem, Evaluation
from cbo_suite.registry import protocol_of
from cbo_suite.verify.designs import Designs


def _read_features() -> set[str]:
    """Read what the processor can do, where Linux tells."""
    file = Path("/proc/cpuinfo")
    return set(file.read_text("utf-8").split()) if file.exists() else set()


ROOT = Path(__file__).parents[2]
# What the libraries are told; the first two are processors of today, the last is one of 2006.
PROCESSORS: dict[str, dict[str, str]] = {
    "with AVX-512": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "with AVX2": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL",
    },
    "with SSE": {
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL",
    },
}
if "avx512f" not in _read_features():
    # Instructions that are not there end a process.
    del PROCESSORS["with AVX-512"]
SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64"


def environment(processor: str) -> dict[str, str]:
    """Return the environment of a process that computes as another processor does."""
    return {**os.environ, **PROCESSORS[processor], "PYTHONPATH": str(ROOT)}


def evaluate_as(
    processor: str, points: Mapping[str, np.ndarray], folder: Path
) -> dict[str, Evaluation]:
    """Evaluate points of problems in a process that computes as another processor does."""
    np.savez(folder / "points.npz", **points)  # type: ignore[arg-type]
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", __spec__.name, "--evaluate", str(folder)],
        check=True,
        capture_output=True,
        env=environment(processor),
        cwd=ROOT,
    )
    with np.load(folder / "values.npz") as values:
        return {id_: Evaluation(values[id_][:, 0], values[id_][:, 1:]) for id_ in points}


def _evaluate(folder: Path) -> None:
    """Evaluate the points of a file."""
    with np.load(folder / "points.npz") as points:
        found = {id_: cbo.make_problem(id_).evaluate(x) for id_, x in points.items()}
    stacked = {id_: np.column_stack(values) for id_, values in found.items()}
    np.savez(folder / "values.npz", **stacked)  # type: ignore[arg-type]


def difference(problem: ConstrainedProblem, here: Evaluation, there: Evaluation) -> float:
    """Return by which part of its size, as replay counts it, a value differs at most."""
    scale = Designs().scale(problem, protocol_of(problem).n_init)
    sizes = np.append(scale.objective, scale.constraints)
    one, other = np.column_stack(here), np.column_stack(there)
    return float(np.max(np.abs(one - other) / np.maximum(np.abs(one), sizes)))


def draw_points(problem: ConstrainedProblem, count: int) -> np.ndarray:
    """Draw points all over a box, on its faces, and around the best known one."""
    random, space = np.random.default_rng(0), problem.space
    known = problem.best_known.x  # type: ignore[attr-defined]
    parts = np.array_split(random.normal(size=(count, space.dim)), 3)
    width = space.upper - space.lower
    near = known + width * parts[2] * 10 ** random.uniform(-6, -1, (len(parts[2]), 1))
    inside = space.lower + width * random.random(parts[0].shape)
    faces = space.lower + width * (0.5 + parts[1])
    points: np.ndarray = np.clip(np.concatenate([inside, faces, near]), space.lower, space.upper)
    return points


def main(arguments: Iterable[str] | None = None) -> None:
    """Measure, or evaluate for another process that does."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*")
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--evaluate", type=Path)
    given = parser.parse_args(None if arguments is None else list(arguments))
    if given.evaluate:
        _evaluate(given.evaluate)
        return
    for id_ in given.problems:
        problem = cbo.make_problem(id_)
        x = draw_points(problem, given.count)
        here = problem.evaluate(x)
        for processor in PROCESSORS:
            with tempfile.TemporaryDirectory() as folder:
                there = evaluate_as(processor, {id_: x}, Path(folder))[id_]
            off = difference(problem, here, there)
            flips = int((here.feasible != there.feasible).sum())
            print(f"{id_} {processor}: {off:.1e}, feasible in one of them only: {flips}")


if __name__ == "__main__":
    main()

"""Executables of our own that speak as MOPTA08 does, well or badly.

The well-behaved one is a C program for a function of 124 variables and 68 constraints:

    f(x) = sum_i i x_i / 124,    c_j(x) = x_j x_(j+56) - j / 68,    i = 1..124, j = 1..68.

The others are shell scripts. All do as they should unless the first variable is `BAD`, so that a
batch can hold good points and one that misbehaves.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import numpy as np

from cbo_suite.problems.mopta08.install import ReferencePoint

BAD = 0.75

C_SOURCE = r"""
#include <stdio.h>
int main(void) {
    double x[125], f = 0.0;
    FILE *in = fopen("input.txt", "r");
    if (in == NULL) return 2;
    for (int i = 1; i <= 124; i++)
        if (fscanf(in, "%lf", &x[i]) != 1) return 3;
    fclose(in);
    for (int i = 1; i <= 124; i++) f += i * x[i] / 124.0;
    FILE *out = fopen("output.txt", "w");
    if (out == NULL) return 4;
    fprintf(out, "%.17g\n", f);
    for (int j = 1; j <= 68; j++) fprintf(out, "%.17g\n", x[j] * x[j + 56] - j / 68.0);
    return fclose(out) ? 5 : 0;
}
"""


def compile_c(folder: Path, source: str = C_SOURCE, name: str = "stand_in") -> Path:
    """Compile a C program; contraction is off so that every operation rounds as in Python."""
    path = folder / name
    command = ["gcc", "-O1", "-ffp-contract=off", "-x", "c", "-o", str(path), "-"]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def values(x: np.ndarray) -> np.ndarray:
    """Return what the C program gives at points `(n, 124)`, shape `(n, 69)`."""
    rows = []
    for point in x.tolist():
        f = 0.0
        for i, value in enumerate(point, start=1):
            f += i * value / 124.0
        rows.append([f, *(point[j] * point[j + 56] - (j + 1) / 68.0 for j in range(68))])
    return np.array(rows)


def references() -> list[ReferencePoint]:
    """Return two points by which the C program is known."""
    points = np.vstack([np.full(124, 0.5), np.linspace(0.0, 1.0, 124)])
    pairs = zip(("half", "ramp"), points, values(points), strict=True)
    return [ReferencePoint(name, x, y) for name, x, y in pairs]


def script(path: Path, misbehaviour: str, good: str = "head -n 69 input.txt > output.txt") -> Path:
    """Write a shell script that gives the first 69 variables, but misbehaves where x_1 is `BAD`."""
    lines = [
        "#!/bin/sh",
        f'if [ "$(head -n 1 input.txt)" != "{BAD!r}" ]; then {good}; exit; fi',
        misbehaviour,
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def batch(n: int = 3, bad: int | None = None) -> np.ndarray:
    """Return random points `(n, 124)`, of which one can make a script misbehave."""
    x = np.random.default_rng(n).random((n, 124))
    if bad is not None:
        x[bad, 0] = BAD
    return x


def processes_of(folder: Path) -> list[str]:
    """Return the command lines and working folders of living processes that name a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            where = str((process / "cwd").readlink())
        except OSError:
            continue
        if command and (str(folder) in command or str(folder) in where):
            found.append(f"{process.name}: {command} in {where}")
    return found


def wait_until_gone(folder: Path, scratch: Path, seconds: float = 20.0) -> None:
    """Wait until no process names `folder` and `scratch` is empty, or fail with what is left."""
    deadline = time.monotonic() + seconds
    while (left := [*processes_of(folder), *scratch.iterdir()]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left, left

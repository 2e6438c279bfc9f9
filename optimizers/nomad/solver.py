"""NOMAD in a process of its own; `cbo_suite.optimizers.nomad` runs this file.

NOMAD keeps its cache, its random numbers and the state of its evaluations in variables of the
process, so that a process has room for one solver. It speaks over pipes: a line of JSON comes in
first, then every point goes out as 1 + d doubles (the first is the processor time so far) and its
values come in as 1 + m doubles. At the end the processor time goes out alone.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO


def main() -> None:
    """Solve the problem that comes in; end when the pipe does."""
    import PyNomad

    # NOMAD writes to the standard output, which is the pipe.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    task = json.loads(sys.stdin.buffer.readline())
    dim, limits = task["dim"], task["num_constraints"]

    def send(x: list[float]) -> None:
        pipe.write(struct.pack(f"<{1 + len(x)}d", time.process_time(), *x))
        pipe.flush()

    def evaluate(point: Any) -> int:
        x = [point.get_coord(i) for i in range(dim)]
        send(x)
        values = struct.unpack(f"<{1 + limits}d", read(sys.stdin.buffer, 8 * (1 + limits)))
        point.setBBO(" ".join(map(repr, values)).encode())
        return 1

    # Only a file has room for more than one start. The working folder is a temporary one.
    lines = (" ".join(map(repr, start)) for start in task["starts"])
    Path("starts.txt").write_text("\n".join(lines) + "\n")
    PyNomad.optimize(
        evaluate,
        [],
        [0.0] * dim,
        [1.0] * dim,
        [
            f"DIMENSION {dim}",
            f"BB_OUTPUT_TYPE OBJ {' '.join(['PB'] * limits)}",
            f"MAX_BB_EVAL {task['evaluations']}",
            f"SEED {task['seed']}",
            "DISPLAY_DEGREE 0",
            "NB_THREADS_PARALLEL_EVAL 1",
            "X0 starts.txt",
        ],
    )
    send([])


def read(stream: BinaryIO, count: int) -> bytes:
    """Read as many bytes; end the process where there are no more."""
    data = stream.read(count)
    if len(data) < count:
        # An exception would be caught by NOMAD, which would then go on.
        os._exit(0)
    return data


if __name__ == "__main__":
    main()

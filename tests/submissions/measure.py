"""Verify files in a process of its own and print what each took; the first argument is a list.

The list holds one path per line, in JSON. For every file one line comes out, with the complaints,
the seconds of the processor, and the megabytes that the process has had at most until then.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from cbo_suite.verify import Neighbours, verify_file


def peak_megabytes() -> float:
    """Return the most memory that this process has had.

    Linux counts for `getrusage` also what the process that started this one had.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(s for s in status.read_text("utf-8").splitlines() if s.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    """Verify every file of the list."""
    for line in Path(sys.argv[1]).read_text("utf-8").splitlines():
        path = Path(json.loads(line))
        start = time.process_time()
        verdict = verify_file(path, neighbours=Neighbours(None, [path]))
        seconds = time.process_time() - start
        found: dict[str, object] = {
            "status": verdict.status,
            "complaints": verdict.complaints,
            "file": verdict.file,
        }
        found["skipped"] = [f.detail for f in verdict.findings if f.outcome != "ok"]
        print(json.dumps(found | {"seconds": seconds, "megabytes": peak_megabytes()}))


if __name__ == "__main__":
    main()

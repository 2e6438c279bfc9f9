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

from cbo_suite.verify import verify_file


def main() -> None:
    """Verify every file of the list."""
    for line in Path(sys.argv[1]).read_text("utf-8").splitlines():
        path = Path(json.loads(line))
        start = time.process_time()
        verdict = verify_file(path)
        seconds = time.process_time() - start
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found = {"status": verdict.status, "complaints": verdict.complaints, "file": verdict.file}
        print(json.dumps(found | {"seconds": seconds, "megabytes": megabytes}))


if __name__ == "__main__":
    main()

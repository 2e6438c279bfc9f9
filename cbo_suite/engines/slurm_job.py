"""What happens in a job of Slurm: one supervised run that writes to the disk of the campaign."""

from __future__ import annotations

import signal
import threading
from typing import Any

import msgspec

from cbo_suite._version import __version__
from cbo_suite.engines import Job, Outcome, other_version
from cbo_suite.engines.supervise import supervise
from cbo_suite.errors import CboError


class Carrier:
    """Carries out one job; submitit brings it to its node and calls it there."""

    def __init__(self, data: bytes) -> None:
        """Keep the `Job` as JSON and the version of cbo-suite that wrote it."""
        self.data = data
        self.version = __version__

    def __call__(self) -> bytes:
        """Carry out the job and return the `Outcome` as JSON; its journal is on the shared disk."""
        job = msgspec.json.decode(self.data, type=Job)
        if self.version != __version__:
            return _refuse(job, other_version("this node", __version__, self.version))
        stop = threading.Event()
        # What is cancelled is told so half a minute before it is killed; time enough to say so.
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        try:
            return msgspec.json.encode(supervise(job, stop=stop))
        except CboError as error:
            return _refuse(job, str(error))

    def checkpoint(self) -> Any:
        """Tell submitit what to do after a preemption: the same, which goes on from the journal."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def _refuse(job: Job, error: str) -> bytes:
    """Answer that the job cannot be carried out here."""
    return msgspec.json.encode(Outcome(job.task, "stopped", error))

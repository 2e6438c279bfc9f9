"""A study: ask and tell over a file, for simulators that run elsewhere.

The file is a journal of its own kind: what is searched, every point that was asked and every
result that was told, as chained JSON lines. Several processes may work on it at once, and whatever
ends one of them, what stands in the file counts. `cbo ask` and `cbo tell` are this on the command
line.
"""

from cbo_suite.study.lines import Result
from cbo_suite.study.reading import StudyContents, is_study, read_study
from cbo_suite.study.results import as_run
from cbo_suite.study.served import DEFAULT_OPTIMIZER, Point, Study

__all__ = [
    "DEFAULT_OPTIMIZER",
    "Point",
    "Result",
    "Study",
    "StudyContents",
    "as_run",
    "is_study",
    "read_study",
]

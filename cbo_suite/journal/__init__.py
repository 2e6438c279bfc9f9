"""The journal of one run: an append-only file of JSON lines that survives a crash at any byte.

The first line is the header (which run this is), then one line per told batch, then the end. A line
counts once its newline is on the disk: every append is one write followed by fsync, and a reader
drops a last line that is torn. Every line has a checksum that covers the line before it too, so
that whatever else changes in the file is found. The format is described in docs/data-format.md.
"""

from cbo_suite.journal.lines import SCHEMA, Batch, End, Given, Header, Number, Pending, Status
from cbo_suite.journal.reading import (
    Contents,
    Outline,
    outline_journal,
    parse_journal,
    read_header,
    read_journal,
)
from cbo_suite.journal.values import digest, gather, restarts, seconds_processor, to_json_numbers
from cbo_suite.journal.writing import JournalWriter

__all__ = [
    "SCHEMA",
    "Batch",
    "Contents",
    "End",
    "Given",
    "Header",
    "JournalWriter",
    "Number",
    "Outline",
    "Pending",
    "Status",
    "digest",
    "gather",
    "outline_journal",
    "parse_journal",
    "read_header",
    "read_journal",
    "restarts",
    "seconds_processor",
    "to_json_numbers",
]

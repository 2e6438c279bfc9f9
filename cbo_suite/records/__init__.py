"""The record of a run: one line of JSON with what scoring and verification need.

The format is described in docs/data-format.md. Reading is strict, because records come from
strangers: a line is the canonical bytes of a record or it is refused. Runs that are too large to
store all their points are sealed ten seeds at a time with a sample that nobody can choose.
"""

from cbo_suite.records.blocks import BLOCK_SEEDS, SAMPLE_SIZE, seal_blocks
from cbo_suite.records.lines import (
    MAX_LINE_BYTES,
    decode_record,
    encode_record,
    read_records,
    write_records,
)
from cbo_suite.records.make import make_record
from cbo_suite.records.record import (
    MAX_POINT_NUMBERS,
    SOURCE,
    Improvement,
    Record,
    Sample,
    improvements,
    regular_batches,
)

__all__ = [
    "BLOCK_SEEDS",
    "MAX_LINE_BYTES",
    "MAX_POINT_NUMBERS",
    "SAMPLE_SIZE",
    "SOURCE",
    "Improvement",
    "Record",
    "Sample",
    "decode_record",
    "encode_record",
    "improvements",
    "make_record",
    "read_records",
    "regular_batches",
    "seal_blocks",
    "write_records",
]

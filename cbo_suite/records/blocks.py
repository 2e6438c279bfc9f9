"""Blocks of ten seeds: what their large runs must open follows from all that they say.

The records of a block, without samples, are hashed to a challenge, which draws evaluations of each
run that does not keep all its points. Who wants to choose what is drawn has to change the block,
and then all of it is drawn anew.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np

from cbo_suite.journal import Contents, gather
from cbo_suite.protocols import Evaluation, Task
from cbo_suite.records.lines import encode_record
from cbo_suite.records.make import status_letters
from cbo_suite.records.record import Indices, Record, Sample
from cbo_suite.records.tree import compute_root, follow_path, hash_leaves, make_path

BLOCK_SEEDS = 10
SAMPLE_SIZE = 32


def remaining(record: Record) -> Indices:
    """Number the evaluations that are neither of the design nor kept, shape `(k,)`."""
    left = np.ones(len(record.objectives), dtype=bool)
    left[: record.task.n_init] = False
    left[record.kept] = False
    return np.flatnonzero(left)


def sample_size(record: Record) -> int:
    """Return how many evaluations of a run are drawn."""
    return min(SAMPLE_SIZE, len(remaining(record)))


def draw_block(block: Sequence[Record]) -> list[Indices]:
    """Draw the evaluations that each record of a block has to open, in rising order.

    Args:
        block: The records of ten seeds in rising order; their samples play no role.
    """
    total = hashlib.sha256()
    for record in block:
        total.update(encode_record(msgspec.structs.replace(record, sample=None)))
    challenge = total.digest()
    return [_draw(challenge, record) for record in block]


def _draw(challenge: bytes, record: Record) -> Indices:
    """Draw without replacement: swap each place with one from there on."""
    left = remaining(record).tolist()
    size = sample_size(record)
    for place in range(size):
        key = challenge + record.task.seed.to_bytes(8, "little") + place.to_bytes(8, "little")
        step = int.from_bytes(hashlib.sha256(key).digest(), "little") % (len(left) - place)
        left[place], left[place + step] = left[place + step], left[place]
    return np.array(sorted(left[:size]), dtype=np.intp)


def opens(record: Record, drawn: Indices) -> bool:
    """Tell whether the sample of a record is what was drawn, and what its root commits to."""
    sample = record.sample
    if sample is None or record.root is None or record.statuses is None:
        return False
    if not len(drawn):
        return sample.path == b""
    values = Evaluation(record.objectives[drawn], sample.constraints)
    letters = "".join(record.statuses[number] for number in drawn)
    leaves = hash_leaves(drawn, sample.points, values, letters)
    opened = dict(zip(drawn.tolist(), leaves, strict=True))
    root = follow_path(len(record.objectives), opened, sample.path)
    return root is not None and root.hex() == record.root


def whole_blocks(records: Iterable[Record]) -> dict[tuple[str, str, int], list[Record]]:
    """Group records by problem, optimizer and ten seeds, and give the groups that have all ten."""
    groups: Mapping[tuple[str, str, int], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.task.seed):
        task = record.task
        groups[task.problem, task.optimizer, task.seed // BLOCK_SEEDS].append(record)
    return {key: group for key, group in groups.items() if len(group) == BLOCK_SEEDS}


def seal_blocks(
    records: Sequence[Record], journal_of: Callable[[Task], Contents | None]
) -> list[Record]:
    """Give large runs the samples that their blocks draw, where a block has all its ten seeds.

    A block stays as it is where it is sealed already, or where a journal is missing.

    Args:
        records: Records of any tasks, each task once.
        journal_of: Finds the journal of a task, None if there is none.

    Returns:
        The records in the same order.
    """
    sealed = {record.task: record for record in records}
    for block in whole_blocks(records).values():
        if all(record.whole or record.schema == 1 for record in block):
            continue
        opened = [
            record if record.whole or opens(record, drawn) else _open(record, drawn, journal_of)
            for record, drawn in zip(block, draw_block(block), strict=True)
        ]
        sealed |= {record.task: record for record in opened if record is not None}
    return [sealed[record.task] for record in records]


def _open(
    record: Record, drawn: Indices, journal_of: Callable[[Task], Contents | None]
) -> Record | None:
    """Add the drawn evaluations to a record, None if the journal is not the one it was made of."""
    contents = journal_of(record.task)
    if contents is None:
        return None
    x, evaluation = gather(contents.batches, record.dim, record.num_constraints)
    leaves = hash_leaves(range(len(x)), x, evaluation, status_letters(contents.batches))
    if compute_root(leaves).hex() != record.root:
        return None
    path = make_path(leaves, drawn.tolist()) if len(drawn) else b""
    sample = Sample(x[drawn], evaluation.constraints[drawn], path)
    return msgspec.structs.replace(record, sample=sample)

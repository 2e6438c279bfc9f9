"""Blocks of ten seeds: what a large run must open, nobody chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import cbo_suite as cbo
from cbo_suite.journal import Contents, read_journal
from cbo_suite.records import (
    SAMPLE_SIZE,
    Record,
    Sample,
    decode_record,
    encode_record,
    make_record,
    seal_blocks,
)
from cbo_suite.records.blocks import draw_block, opens, remaining
from cbo_suite.tasks import Task

Journals = dict[Task, Contents]


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Journals:
    """Twelve runs that are too large to keep all points."""
    folder = tmp_path_factory.mktemp("journals")
    found = {}
    for seed in range(12):
        path = folder / f"{seed}.jsonl"
        cbo.run("rover-60d-v1", "random-search", budget=200, n_init=20, seed=seed, journal=path)
        contents = read_journal(path)
        assert contents is not None
        found[contents.header.task] = contents
    return found


@pytest.fixture(scope="module")
def records(journals: Journals) -> list[Record]:
    """Their records, sealed."""
    return seal_blocks([make_record(contents) for contents in journals.values()], journals.get)


def test_a_whole_block_is_sealed(records: list[Record], journals: Journals) -> None:
    """Each of its runs opens 32 evaluations; the two seeds of the next block wait for more."""
    for record, drawn in zip(records[:10], draw_block(records[:10]), strict=True):
        assert len(drawn) == len(set(drawn.tolist())) == SAMPLE_SIZE
        assert set(drawn.tolist()) <= set(remaining(record).tolist())
        assert drawn.min() >= 20
        assert record.sample is not None
        assert opens(record, drawn)
        assert decode_record(encode_record(record)) == record
    assert records[10].sample is records[11].sample is None
    assert seal_blocks(records, lambda task: None) == records


def test_without_its_journals_a_block_stays_open(records: list[Record], journals: Journals) -> None:
    """Nor is the journal of another run taken."""
    bare = [msgspec.structs.replace(record, sample=None) for record in records]
    assert seal_blocks(bare, lambda task: None) == bare
    assert seal_blocks(bare[:9], journals.get) == bare[:9]
    other = journals[records[11].task]
    assert seal_blocks(bare, lambda task: other) == bare


def test_whatever_a_block_says_decides_what_is_drawn(records: list[Record]) -> None:
    """No field of any of its runs can be edited once the draw is known."""
    block = records[:10]
    before = draw_block(block)
    edits: list[dict[str, Any]] = [
        {"seconds_optimizer": 1.0},
        {"error": "a"},
        {"machine": {}},
        {"root": "0" * 64},
        {"digest": "0" * 64},
        {"objectives": block[9].objectives + 1.0},
    ]
    for changes in edits:
        edited = [*block[:9], msgspec.structs.replace(block[9], **changes)]
        drawn = draw_block(edited)
        assert not any(np.array_equal(one, other) for one, other in zip(before, drawn, strict=True))
        assert not any(opens(record, now) for record, now in zip(edited, drawn, strict=True))
    without = [msgspec.structs.replace(record, sample=None) for record in block]
    assert all(
        np.array_equal(one, other) for one, other in zip(before, draw_block(without), strict=True)
    )


def test_a_sample_opens_what_was_committed_to(records: list[Record]) -> None:
    """Another point, constraint, objective or status does not lead to the root."""
    record, drawn = records[3], draw_block(records[:10])[3]
    sample = record.sample
    assert sample is not None
    objectives = record.objectives.copy()
    objectives[drawn[5]] += 1e-15
    forged: list[dict[str, Any]] = [
        {"sample": Sample(sample.points + 1e-15, sample.constraints, sample.path)},
        {"sample": Sample(sample.points, sample.constraints - 1e-9, sample.path)},
        {"sample": Sample(sample.points, sample.constraints, sample.path[:-1] + b"0")},
        {"sample": None},
        {"objectives": objectives},
        {"statuses": "n" * 200},
        {"root": "0" * 64},
    ]
    assert opens(record, drawn)
    for changes in forged:
        assert not opens(msgspec.structs.replace(record, **changes), drawn)


def test_a_run_with_little_left_opens_all_of_it(tmp_path: Path) -> None:
    """Fewer than 32 evaluations after the design."""
    found: Journals = {}
    for seed in range(10):
        path = tmp_path / f"{seed}.jsonl"
        cbo.run("rover-60d-v1", "random-search", budget=181, n_init=180, seed=seed, journal=path)
        contents = read_journal(path)
        assert contents is not None
        found[contents.header.task] = contents
    sealed = seal_blocks([make_record(contents) for contents in found.values()], found.get)
    for record, drawn in zip(sealed, draw_block(sealed), strict=True):
        assert record.sample is not None
        assert len(record.sample.points) == len(drawn) == len(remaining(record)) <= 1
        assert opens(record, drawn)
        assert decode_record(encode_record(record)) == record

"""An id stands for one method: rows that grow, copies, look-alikes, and sources that cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import cbo_suite as cbo
from cbo_suite.cli import main
from cbo_suite.harness import releases
from cbo_suite.records import SOURCE, Record, read_records
from cbo_suite.verify import Neighbours, Verdict, verify_file
from cbo_suite.verify.identity_checks import is_look_alike, looks_the_same
from tests.submissions.honest import failed_at_once, put, renamed, run_records, sealed
from tests.submissions.material import LARGE, claim, make_row, old_record, values_of

ROOT = Path(__file__).parents[2]
OPTIMIZER = """from cbo_suite.optimizers.random_search import RandomSearch

class Search(RandomSearch):
    scale = 0.5

    def ask(self, n=1):
        return self.space.from_unit(self.scale * self.space.to_unit(super().ask(n)))

    def __init__(self, space, **settings):
        super().__init__(space, **settings)
        self.space = space
"""
MAKE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from my_search import Search
from tests.submissions.honest import put, renamed, run_records
folder, seeds = Path(sys.argv[2]), range(*map(int, sys.argv[3:]))
put(folder, renamed(run_records(folder, "toy-2d-v1", Search, seeds), "my-search"))
"""


def make(source: str, folder: Path, first: int, last: int) -> list[Record]:
    """Run seeds of an optimizer with this source in a process of its own."""
    folder.mkdir()
    (folder / "my_search.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-c", MAKE, str(folder), str(folder), str(first), str(last)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(read_records(folder / "toy-2d-v1" / "my-search.jsonl"))


def test_a_row_of_one_identity_grows(tmp_path: Path) -> None:
    """Ten seeds more after a comment join the published ones; after a changed constant not."""
    first = make(OPTIMIZER, tmp_path / "first", 0, 10)
    published = tmp_path / "published"
    put(published, first)
    comment = OPTIMIZER.replace("scale = 0.5", "# Half of the box.\n    scale = 0.50")
    more = make(comment, tmp_path / "comment", 10, 20)
    grown = put(tmp_path / "grown", [*first, *more])
    verdict = verify_file(grown, against=published)
    assert (verdict.status, verdict.complaints, verdict.flags) == ("verified", [], [])
    assert verdict.findings[1].detail == "10 runs more than published"
    assert verdict.findings[2].detail.endswith("of an optimizer that is not in the suite")
    constant = make(OPTIMIZER.replace("0.5", "0.6"), tmp_path / "constant", 10, 20)
    mixed = put(tmp_path / "mixed", [*first, *constant])
    (complaint,) = verify_file(mixed, against=published).complaints
    source = constant[0].versions[SOURCE]
    assert f"line 11, field versions: optimizer-source {source}, unlike" in complaint


def test_new_rows_are_of_the_present_format(records: list[Record], tmp_path: Path) -> None:
    """Version 1 asks for less; what is published in it stays, and does not grow."""
    old = renamed([old_record(record, True) for record in records], "my-search")
    path = put(tmp_path / "new", old)
    (complaint,) = verify_file(path, against=tmp_path).complaints
    assert "line 1, field schema: new runs are of version 2 of the format" in complaint
    put(tmp_path, old)
    assert verify_file(path, against=tmp_path).status == "verified"


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Ten honest runs on the toy problem."""
    folder = tmp_path_factory.mktemp("journals")
    return run_records(folder, "toy-2d-v1", "random-search", range(10))


def with_source(records: Sequence[Record], source: str) -> list[Record]:
    """Let records name another identity; "none" takes it away."""
    kept = {k: v for k, v in records[0].versions.items() if k != SOURCE}
    versions = kept if source == "none" else kept | {SOURCE: source}
    return [msgspec.structs.replace(record, versions=versions) for record in records]


@pytest.mark.parametrize("source", ["", "none", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 16])
@pytest.mark.parametrize("optimizer", ["random-search", "my-search"])
def test_an_identity_has_one_form(
    source: str, optimizer: str, records: list[Record], tmp_path: Path
) -> None:
    """The digest of nothing, a shortened one, another alphabet, none at all."""
    path = put(tmp_path, with_source(renamed(records, optimizer), source))
    (complaint,) = verify_file(path).complaints
    said = "it does not name 'optimizer-source': code of a notebook" if source == "none" else "SHA"
    assert "line 1, field versions: " in complaint
    assert said in complaint


def test_an_id_of_the_suite_is_its_code(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is here, or what it was in a release; nobody else's code."""
    assert verify_file(put(tmp_path / "here", records)).status == "verified"
    other = with_source(records, "0" * 64)
    path = put(tmp_path / "other", other)
    (complaint,) = verify_file(path).complaints
    assert "optimizer-source 000000000000... is neither what random-search is here nor" in complaint
    assert "random-search-2" in complaint
    # That of another optimizer of the suite is none of its own.
    for release, status in (("sobol-search", "refused"), ("random-search", "verified")):
        found = frozenset({(release, "0" * 64)})
        monkeypatch.setattr(
            "cbo_suite.verify.identity_checks.released_identities", lambda f=found: f
        )
        assert verify_file(path).status == status
    assert "what random-search was in a release" in verify_file(path).findings[1].detail
    foreign = put(tmp_path / "foreign", renamed(other, "my-search"))
    assert verify_file(foreign).status == "verified"


def test_released_identities_are_read() -> None:
    """Pairs of id and identity, as the file of this version has them."""
    pairs = {(row.id, row.identity) for row in releases.read_releases(releases.FILE.read_bytes())}
    assert releases.released_identities() == pairs


def together(*paths: Path, against: Path | None = None) -> dict[str, Verdict]:
    """Verify files together; return the verdicts by row."""
    neighbours = Neighbours(against, paths)
    verdicts = [verify_file(path, against=against, neighbours=neighbours) for path in paths]
    return {verdict.row: verdict for verdict in verdicts}


def test_runs_under_another_id_are_pointed_out(records: list[Record], tmp_path: Path) -> None:
    """Copied from the board, or sent twice at once: neither is verified before somebody looks."""
    published = tmp_path / "published"
    put(published, records)
    flag = "line 1: the same run stands under random-search"
    copy = put(tmp_path / "copy", renamed(records, "my-search"))
    alone = verify_file(copy, against=published)
    assert (alone.status, alone.complaints, alone.flags) == ("unverified", [], [flag])
    # A single one of many.
    own = run_records(tmp_path, "toy-2d-v1", "sobol-search", range(10))
    mostly = with_source(renamed([*own[:7], records[7], *own[8:]], "my-search"), "0" * 64)
    verdict = verify_file(put(tmp_path / "mostly", mostly), against=published)
    assert verdict.flags == ["line 8: the same run stands under random-search"]
    assert verdict.status == "unverified"
    # The original on the board keeps its standing, whoever copies it.
    original = put(tmp_path / "original", records)
    verdicts = together(copy, original, against=published)
    assert verdicts["toy-2d-v1/my-search"].status == "unverified"
    assert verdicts["toy-2d-v1/random-search"].status == "verified"
    assert verdicts["toy-2d-v1/random-search"].flags == [
        "line 1: the same run stands under my-search"
    ]
    verdicts = together(copy, original)
    assert [verdict.status for verdict in verdicts.values()] == ["unverified", "unverified"]


def path_of(records: Sequence[Record]) -> Path:
    """Return where records belong below a folder."""
    return Path(records[0].task.problem) / f"{records[0].task.optimizer}.jsonl"


def test_nobody_is_a_copy_of_what_another_claims(records: list[Record], tmp_path: Path) -> None:
    """The digest of a large run is not computed again, so it speaks against nobody."""
    large = make_row(LARGE, records[0])
    values = values_of(large, repeat_last, range(10))
    claimed = [
        msgspec.structs.replace(record, digest=other.digest)
        for record, other in zip(
            renamed(claim(LARGE, values, records[0]), "spoiler"), large.records, strict=True
        )
    ]
    spoiler = put(tmp_path, sealed(claimed, values))
    assert verify_file(spoiler).status == "verified"
    verdict = verify_file(put(tmp_path / "honest", large.records), against=tmp_path)
    assert (verdict.status, verdict.flags) == ("verified", [])


def repeat_last(x: np.ndarray, objective: np.ndarray, constraints: np.ndarray) -> None:
    """Evaluate the last point but one again instead of the last."""
    for array in (x, objective, constraints):
        array[-1] = array[-2]


def test_a_copy_is_known_by_its_tree_too(records: list[Record], tmp_path: Path) -> None:
    """Where the digest of a large run cannot be computed again, its root is committed to."""
    published = tmp_path / "published"
    put(published, records)
    copied = [
        msgspec.structs.replace(record, digest=f"{record.task.seed:064x}")
        for record in renamed(records, "my-search")
    ]
    verdict = verify_file(put(tmp_path / "copy", copied), against=published)
    assert "the same run stands under random-search" in verdict.flags[0]


def test_the_command_compares_what_it_is_given(records: list[Record], tmp_path: Path) -> None:
    """Of all files of a folder."""
    put(tmp_path, records)
    put(tmp_path, renamed(records, "my-search"))
    done = CliRunner().invoke(main, ["verify", "--json", str(tmp_path)])
    assert [verdict["status"] for verdict in json.loads(done.stdout)] == ["unverified"] * 2
    done = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert "look: line 1: the same run stands under my-search" in done.stdout


def test_variants_of_a_method_may_do_the_same(records: list[Record], tmp_path: Path) -> None:
    """An option can be without effect; runs that failed at once are all alike."""
    variants = [put(tmp_path, renamed(records, id_)) for id_ in ("scbo", "scbo-ei", "scbo-global")]
    assert [verdict.flags for verdict in together(*variants).values()] == [[], [], []]
    failed = [failed_at_once(record) for record in records]
    both = [put(tmp_path / "failed", renamed(failed, id_)) for id_ in ("my-search", "cobyla")]
    assert [verdict.flags for verdict in together(*both).values()] == [[], []]


def test_an_id_is_one_method_on_all_problems_or_says_so(
    records: list[Record], tmp_path: Path
) -> None:
    """Identity and options are compared with those on other problems."""
    published = tmp_path / "published"
    put(published, renamed(records, "my-search"))
    other = run_records(tmp_path, "tension-string-3d-v1", "random-search", range(10))
    same = put(tmp_path / "same", renamed(other, "my-search"))
    assert verify_file(same, against=published).flags == []
    changed = with_source(renamed(other, "my-search"), "0" * 64)
    flags = verify_file(put(tmp_path / "changed", changed), against=published).flags
    assert flags == ["another identity than on toy-2d-v1"]
    tuned = [msgspec.structs.replace(r, options={"step": 1}) for r in renamed(other, "my-search")]
    verdict = verify_file(put(tmp_path / "tuned", tuned), against=published)
    assert verdict.flags == ["other options than on toy-2d-v1"]
    own = [msgspec.structs.replace(record, options={"step": 1}) for record in other]
    verdict = verify_file(put(tmp_path / "own", own))
    assert verdict.flags == ["the runs have options that random-search does not have by itself"]
    # They would be the row of random-search: a maintainer has to look, unless one has already.
    assert verdict.status == "unverified"
    put(published, own)
    assert verify_file(tmp_path / "own" / path_of(own), against=published).status == "verified"


@pytest.mark.parametrize(
    "optimizer",
    [
        *["scb0", "scbo-", "scob", "scb", "xscbo", "cei2", "cobyla-", "random-serach", "ei"],
        *["randorn-search", "s-c-b-o", "5cb0", "ce1-transf0rmed"],
    ],
)
def test_ids_that_look_like_those_of_the_suite_are_refused(
    optimizer: str, records: list[Record], tmp_path: Path
) -> None:
    """One sign more, less or other, two swapped, or several that the eye takes for others.

    A hyphen at the end is no id at all.
    """
    (complaint,) = verify_file(put(tmp_path, renamed(records, optimizer))).complaints
    assert "field path: the " in complaint
    assert ("choose one that nobody takes for it" in complaint) != optimizer.endswith("-")


def test_ids_that_look_like_published_ones_are_refused(
    records: list[Record], tmp_path: Path
) -> None:
    """Unless they are published themselves, or are versions of one method."""
    published = tmp_path / "published"
    others = run_records(tmp_path, "toy-2d-v1", "sobol-search", range(10))
    put(published, renamed(records, "my-search"))
    path = put(tmp_path / "new", renamed(others, "my-serch"))
    assert verify_file(path).status == "verified"
    (complaint,) = verify_file(path, against=published).complaints
    assert "the id 'my-serch' is one letter away from 'my-search'" in complaint
    put(published, renamed(others, "my-serch"))
    assert verify_file(path, against=published).status == "verified"
    put(published, renamed(records, "my-search-2"))
    path = put(tmp_path / "new", renamed(others, "my-search-3"))
    assert verify_file(path, against=published).complaints == []


def test_the_ids_of_the_suite_may_be_alike() -> None:
    """They are known: cobyla and cobyqa."""
    ids = [info.id for info in cbo.list_optimizers()]
    alike = {(a, b) for a in ids for b in ids if is_look_alike(a, b)}
    assert alike == {("cobyla", "cobyqa"), ("cobyqa", "cobyla")}
    assert not any(looks_the_same(a, b) for a in ids for b in ids)


def edits(word: str) -> set[str]:
    """All words that one edit makes of another, by definition."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    signs = "abc-"
    return {
        *(a + b[1:] for a, b in cuts if b),
        *(a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1),
        *(a + c + b[1:] for a, b in cuts if b for c in signs),
        *(a + c + b for a, b in cuts for c in signs),
    } - {word}


@given(st.text("abc-", max_size=6), st.text("abc-", max_size=6))
def test_one_edit_is_told_from_more(first: str, second: str) -> None:
    """Against the definition."""
    assert is_look_alike(first, second) == (second in edits(first))


@given(st.text("abc-", max_size=8), st.data())
def test_every_edit_is_seen(word: str, data: st.DataObject) -> None:
    """Whichever way round."""
    other = data.draw(st.sampled_from(sorted(edits(word))))
    assert is_look_alike(word, other)
    assert is_look_alike(other, word)

"""Verifying beyond one file: published rows, running again, marks, and the command."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

import cbo_suite as cbo
from cbo_suite.campaign.store import Store
from cbo_suite.cli import main
from cbo_suite.errors import MissingExtra, RecordError
from cbo_suite.optimizers.random_search import RandomSearch
from cbo_suite.records import Record
from cbo_suite.verify import Verdict, mark_verified, verify_file
from tests.submissions.honest import failed_at_once, put, renamed, run_records


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Twenty honest runs on the toy problem."""
    folder = tmp_path_factory.mktemp("journals")
    return run_records(folder, "toy-2d-v1", "random-search", range(20))


def test_published_rows_are_extended_but_never_overwritten(
    records: list[Record], tmp_path: Path
) -> None:
    """More seeds of the same version are welcome; what is published stays, and none goes."""
    published = tmp_path / "published"
    put(published, records[:10])
    path = put(tmp_path / "new", records)
    verdict = verify_file(path, against=published)
    assert verdict.status == "verified"
    assert verdict.findings[1][:3] == ("published", "ok", "10 runs more than published")
    assert verify_file(path, against=tmp_path).findings[1].detail == "a new row"
    put(published, [*records[:9], msgspec.structs.replace(records[9], digest="0" * 64)])
    (complaint,) = verify_file(path, against=published).complaints
    assert "line 10, field line: seed 9 is published with other bytes" in complaint
    put(published, records)
    assert verify_file(path, against=published).findings[1].detail == "0 runs more than published"
    (complaint,) = verify_file(put(tmp_path / "new", records[:10]), against=published).complaints
    assert "field task.seed: seed 10 is published and missing here" in complaint
    (published / "toy-2d-v1" / "random-search.jsonl").write_bytes(b"")
    (complaint,) = verify_file(path, against=published).complaints
    assert str(published) in complaint
    assert "field size: the file is empty" in complaint


CHANGES: dict[str, object] = {
    "options": {"scale": 2},
    "versions": {"cbo-suite": "0.0.1"},
    "machine": {"system": "other"},
    "facts": {"space": "0" * 64},
    "status": "failed",
    "seconds_processor": 1e6,
    "seconds_optimizer": 1e6,
    "seconds_evaluation": 1e6,
    "restarts": [20, 50],
}


@pytest.mark.parametrize("field", CHANGES)
def test_no_field_of_a_published_run_can_be_rewritten(
    field: str, records: list[Record], tmp_path: Path
) -> None:
    """Neither in one run nor in all: the line must be the published one, byte by byte."""
    put(tmp_path / "published", records)
    changed = [msgspec.structs.replace(record, **{field: CHANGES[field]}) for record in records]
    path = put(tmp_path / "new", changed)
    (complaint,) = verify_file(path, against=tmp_path / "published").complaints
    assert "line 1, field line: seed 0 is published with other bytes" in complaint
    assert "random-search-2" in complaint
    path = put(tmp_path / "new", [*records[:9], changed[9], *records[10:]])
    found = verify_file(path, against=tmp_path / "published").complaints
    assert "line 10, field " in found[0]


def a_digit_off(record: Record) -> Record:
    """Change a value by a unit in its last place, which the replay has to allow."""
    steps = {step.index for step in record.improvements}
    number = next(i for i in range(20, 100) if i not in steps)
    objectives = record.objectives.copy()
    objectives[number] = np.nextafter(objectives[number], np.inf)
    return msgspec.structs.replace(record, objectives=objectives)


def test_published_results_are_not_replaced_under_their_digests(
    records: list[Record], tmp_path: Path
) -> None:
    """Runs of another method with the published digests, each with a value a last digit off."""
    others = run_records(tmp_path, "toy-2d-v1", "sobol-search", range(20))
    forged = [
        msgspec.structs.replace(a_digit_off(other), digest=record.digest)
        for other, record in zip(renamed(others, "random-search"), records, strict=True)
    ]
    put(tmp_path / "published", records)
    path = put(tmp_path / "new", forged)
    (complaint,) = verify_file(path, against=tmp_path / "published").complaints
    assert "line 1, field line: seed 0 is published with other bytes" in complaint


def as_old(record: Record) -> Record:
    """Return a record of the first version, which does not say which code made it."""
    steps = np.array([step.x for step in record.improvements])
    return msgspec.structs.replace(
        record,
        schema=1,
        versions={k: v for k, v in record.versions.items() if k != "optimizer-source"},
        statuses=None,
        restarts=None,
        seconds_processor=None,
        root=None,
        step_constraints=cbo.make_problem(record.task.problem).evaluate(steps).constraints,
    )


def test_rows_that_do_not_say_which_code_made_them_stay_and_grow_no_more(
    records: list[Record], tmp_path: Path
) -> None:
    """As those of the first version of records; new runs say it."""
    older = [as_old(record) for record in records]
    published = tmp_path / "published"
    put(published, older[:10])
    verdict = verify_file(put(tmp_path / "same", older[:10]), against=published)
    assert verdict.status == "verified"
    assert verdict.findings[2][:2] == ("identity", "skipped")
    assert "do not say which code made them" in verdict.findings[2].detail
    (complaint,) = verify_file(put(tmp_path / "more", older), against=published).complaints
    assert (
        "line 11, field versions: it does not name 'optimizer-source'; the published" in complaint
    )
    told = [
        msgspec.structs.replace(record, versions=record.versions | {"optimizer-source": "0" * 64})
        for record in older[10:]
    ]
    mixed = put(tmp_path / "mixed", older[:10] + told)
    (complaint,) = verify_file(mixed, against=published).complaints
    assert "line 11, field versions: optimizer-source " in complaint
    (complaint,) = verify_file(put(tmp_path / "new", older), against=tmp_path).complaints
    assert "line 1, field versions: it does not name 'optimizer-source'; new runs" in complaint


def test_a_run_that_does_not_repeat_is_found(records: list[Record], tmp_path: Path) -> None:
    """Runs of another optimizer pass the replay; running them again shows it."""
    claimed = renamed(run_records(tmp_path, "toy-2d-v1", "cobyla", range(20)), "random-search")
    path = put(tmp_path / "runs", claimed)
    assert verify_file(path).status == "verified"
    few = verify_file(path, rerun=3)
    assert (few.status, few.complaints) == ("unverified", [])
    assert few.findings[-1][:2] == ("rerun", "failed")
    assert "0 of 3 identical" in few.findings[-1].detail
    assert "3 complete runs that differ are too few for a test" in few.findings[-1].detail
    many = verify_file(path, rerun=20)
    assert many.status == "unverified"
    assert "recorded runs end better than those made again, p = " in many.findings[-1].detail


def test_runs_that_end_no_better_than_those_made_again_are_believed(
    records: list[Record], tmp_path: Path
) -> None:
    """Another machine may lead a search elsewhere; what the file says of machines plays no role."""
    others = run_records(tmp_path, "toy-2d-v1", "sobol-search", range(20))
    claimed = renamed(others, "random-search")
    for text in ("this one", "another one"):
        told = [msgspec.structs.replace(r, machine={"system": text}) for r in claimed]
        verdict = verify_file(put(tmp_path / text, told), rerun=20)
        assert (verdict.status, verdict.complaints) == ("verified", [])
        assert "0 of 20 identical" in verdict.findings[-1].detail
        assert "recorded runs end no better than those made again" in verdict.findings[-1].detail


def test_a_few_chosen_runs_do_not_hide_among_honest_ones(
    records: list[Record], tmp_path: Path
) -> None:
    """Runs that come out the same are no evidence for those that do not."""
    better = renamed(run_records(tmp_path, "toy-2d-v1", "cobyla", range(7)), "random-search")
    verdict = verify_file(put(tmp_path / "runs", [*better, *records[7:]]), rerun=20)
    assert verdict.status == "unverified"
    assert (
        "13 of 20 identical (seed 0: evaluation 10 is another one)" in verdict.findings[-1].detail
    )
    assert "7 complete runs that differ are too few" in verdict.findings[-1].detail


def test_failed_runs_have_no_part_in_the_test(records: list[Record], tmp_path: Path) -> None:
    """A run that failed cannot widen what passes for the same."""
    better = renamed(run_records(tmp_path, "toy-2d-v1", "cobyla", range(20)), "random-search")
    claimed = [*better[:15], *(failed_at_once(record) for record in records[15:])]
    verdict = verify_file(put(tmp_path / "runs", claimed), rerun=20)
    assert verdict.status == "unverified"
    assert "recorded runs end better than those made again" in verdict.findings[-1].detail


def test_the_right_digest_beside_other_points_is_found(
    records: list[Record], tmp_path: Path
) -> None:
    """Running again compares values: everybody can compute the digest of an honest run."""
    others = renamed(run_records(tmp_path, "toy-2d-v1", "sobol-search", range(20)), "random-search")
    claimed = [
        msgspec.structs.replace(a_digit_off(other), digest=record.digest, machine={"system": "x"})
        for other, record in zip(others, records, strict=True)
    ]
    path = put(tmp_path / "runs", claimed)
    assert verify_file(path).status == "verified"
    found = verify_file(path, rerun=20).complaints
    assert len(found) == 20
    assert "line 1, field digest: run again, evaluation 10 is another one" in found[0]


def test_options_that_the_optimizer_does_not_have_are_found(
    records: list[Record], tmp_path: Path
) -> None:
    """A run that has no evaluation when it is made again is not verified, and no crash."""
    claimed = [msgspec.structs.replace(record, options={"nonexistent": 1}) for record in records]
    path = put(tmp_path, claimed)
    done = CliRunner().invoke(main, ["verify", str(path), "--rerun", "1"])
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert "0 of 1 identical" in done.stdout
    assert "0 verified, 1 unverified, 0 refused" in done.stdout


def test_runs_that_failed_at_once_are_run_again(records: list[Record], tmp_path: Path) -> None:
    """They fail again; where that is not how it went, they are not verified."""
    failed = [*records[:15], *(failed_at_once(record) for record in records[15:])]
    verdict = verify_file(put(tmp_path, failed), rerun=20)
    assert verdict.status == "unverified"
    expected = "15 of 20 identical (seed 15: it has 100 evaluations instead of 0)"
    assert expected in verdict.findings[-1].detail
    broken = [
        msgspec.structs.replace(failed_at_once(r), options={"nonexistent": 1}) for r in records
    ]
    verdict = verify_file(put(tmp_path, broken), rerun=20)
    assert verdict.complaints == []
    assert verdict.findings[-1].detail.endswith("seed 19 identical")


def test_an_optimizer_that_declines_the_problem_did_not_run_it(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its limits say that there can be no such run."""
    monkeypatch.setattr(RandomSearch, "max_dim", 1, raising=False)
    verdict = verify_file(put(tmp_path, records), rerun=1)
    assert verdict.status == "unverified"
    assert "it cannot be run again" in verdict.findings[-1].detail


def test_what_cannot_be_run_again_is_not_verified(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code of an optimizer is needed only where that is asked for; then it must be there."""
    path = str(put(tmp_path, renamed(records, "my-search")))
    assert CliRunner().invoke(main, ["verify", path]).exit_code == 0
    done = CliRunner().invoke(main, ["verify", path, "--rerun", "1"])
    assert done.exit_code == 1
    assert "my-search is not installed here: install its package, or leave out --rerun" in (
        done.stdout
    )
    assert "0 verified, 1 unverified, 0 refused" in done.stdout

    def without_library(*_: object, **__: object) -> None:
        raise MissingExtra('needs torch: pip install "cbo-suite[scbo]"')

    monkeypatch.setattr("cbo_suite.verify.rerun.execute", without_library)
    verdict = verify_file(put(tmp_path, records), rerun=1)
    assert verdict.status == "unverified"
    assert verdict.findings[-1][:2] == ("rerun", "skipped")
    assert "cbo-suite[scbo]" in verdict.findings[-1].detail


@pytest.mark.slow
def test_who_writes_a_file_cannot_choose_what_is_run_again(
    records: list[Record], tmp_path: Path
) -> None:
    """The same file is drawn from anew each time, and again as before with the printed salt."""
    path = put(tmp_path, records)
    drawn = {verify_file(path, rerun=1).findings[-1].detail for _ in range(20)}
    # One seed in twenty: that all twenty draws are the same has a chance of 20 ** -19.
    assert len(drawn) > 1
    command = ["verify", str(path), "--rerun", "2"]
    first = CliRunner().invoke(main, command).stdout
    (salt,) = re.findall(r"--salt ([0-9a-f]{32})$", first, re.MULTILINE)
    assert CliRunner().invoke(main, [*command, "--salt", salt]).stdout == first
    plain = CliRunner().invoke(main, [*command, "--salt", salt, "--json"]).stdout
    assert json.loads(plain)[0]["salt"] == salt
    refused = CliRunner().invoke(main, [*command, "--salt", "pepper"])
    assert refused.exit_code == 2
    assert "got 'pepper'; write the digits 0-9 and a-f that were printed" in refused.stderr


def test_a_campaign_folder_is_sent_to_export(records: list[Record], tmp_path: Path) -> None:
    """It holds journals and outcomes too: one sentence instead of a refusal for each."""
    put(tmp_path / "runs", records)
    Store(tmp_path / "runs").write_plan([record.task for record in records])
    done = CliRunner().invoke(main, ["verify", str(tmp_path / "runs")])
    assert done.exit_code == 1
    assert "is a campaign folder: `cbo export` it first" in done.output
    assert done.output.count("\n") == 1


def test_verified_rows_are_marked(records: list[Record], tmp_path: Path) -> None:
    """The file maps rows to digests, in a fixed order; what is refused loses its mark."""
    path, marks = put(tmp_path / "runs", records), tmp_path / "verified.json"
    other = {"a-v1/b": {"replayed": 0.5, "sha256": "c"}}
    marks.write_text(json.dumps(other))
    done = CliRunner().invoke(main, ["verify", str(tmp_path / "runs"), "--mark", str(marks)])
    assert done.exit_code == 0, done.output
    mark = {"replayed": 1.0, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert json.loads(marks.read_text()) == other | {"toy-2d-v1/random-search": mark}
    verdict = verify_file(path)
    mark_verified(marks, [verdict._replace(status="unverified")])
    assert "toy-2d-v1/random-search" in json.loads(marks.read_text())
    mark_verified(marks, [verdict._replace(status="refused")])
    assert json.loads(marks.read_text()) == other
    mark_verified(marks, [verdict])
    path.write_bytes(path.read_bytes()[:-3000])
    mark_verified(marks, [verify_file(path), verify_file(tmp_path / "nowhere" / "b.jsonl")])
    assert json.loads(marks.read_text()) == other
    marks.write_text("[]")
    with pytest.raises(RecordError, match=r"verified\.json, field line: Expected `object`"):
        mark_verified(marks, [])


def test_json_output_is_complete(records: list[Record], tmp_path: Path) -> None:
    """A program gets everything that a person gets, for good and bad files."""
    good, bad = put(tmp_path / "good", records), put(tmp_path / "bad", records[:5])
    done = CliRunner().invoke(main, ["verify", "--json", str(good), str(bad)])
    assert done.exit_code == 1
    first, second = json.loads(done.stdout)
    assert first.keys() == set(Verdict._fields)
    assert (first["status"], second["status"]) == ("verified", "refused")
    assert first["findings"][0]["check"] == "records"
    assert "5 runs, at least 10 seeds are needed" in second["complaints"][0]


def test_a_file_is_found_from_its_own_folder(
    records: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder counts, however the path is written."""
    path = put(tmp_path, records)
    monkeypatch.chdir(path.parent)
    assert verify_file(Path(path.name)).status == "verified"
    (path.parent / "below").mkdir()
    monkeypatch.chdir(path.parent / "below")
    assert verify_file(Path("..") / path.name).status == "verified"


def test_a_folder_is_searched_and_names_are_no_markup(
    records: list[Record], tmp_path: Path
) -> None:
    """Everything in a folder is looked at, links too, and odd names are printed as they are."""
    put(tmp_path, records)
    (tmp_path / "odd[").mkdir()
    (tmp_path / "odd[" / "red]:smile:.jsonl").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "toy-2d-v1")
    done = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert done.exit_code == 1
    assert "1 verified, 0 unverified, 2 refused" in done.stdout
    assert "odd[/red]:smile:.jsonl: refused" in done.stdout
    assert "link, field path:" in done.stderr

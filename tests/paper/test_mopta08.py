"""The report and the site with a record of MOPTA08, made with a stand-in for its executable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbo_suite.harness import run
from cbo_suite.journal import read_journal
from cbo_suite.paper.claims import judge
from cbo_suite.paper.evidence import Evidence, condense
from cbo_suite.paper.experiments import MOPTA08
from cbo_suite.paper.figures import make_figures
from cbo_suite.paper.report import encode_claims, write_report
from cbo_suite.paper.tables import make_tables
from cbo_suite.problems.mopta08 import Mopta08
from cbo_suite.records import Record, make_record
from cbo_suite.scoring.overall import make_board
from cbo_suite.scoring.references import load_references
from cbo_suite.site import build
from tests.problems.stand_ins import compile_c, references

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="executables are supervised on Linux and macOS only"
)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Run COBYLA on the stand-in; short, because every evaluation is a process."""
    folder = tmp_path_factory.mktemp("mopta08")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CBO_MOPTA08", str(compile_c(folder)))
        problem = Mopta08(references=references())
        run(problem, "cobyla", budget=20, n_init=15, seed=0, journal=folder / "run.jsonl")
    contents = read_journal(folder / "run.jsonl")
    assert contents is not None
    return make_record(contents)


def test_the_report_is_right_with_a_record(record: Record) -> None:
    """Figure and table have it; the claim counts it and waits for the others."""
    assert "executable_sha256" in record.facts
    runs = condense([record])
    evidence = Evidence({(MOPTA08, "cobyla"): runs})
    claim = judge(evidence)[8]
    assert claim.verdict == "cannot be told"
    assert claim.why.startswith("1 of 90 runs; its executable is third-party software")
    figures = make_figures(evidence)
    assert figures.keys() == {"mopta08"}
    assert figures["mopta08"].axes[0].get_title() == "124D MOPTA08\n(1 of 150 runs)"
    table = make_tables(evidence)["mopta08"]
    [row] = table.rows
    assert row[:3] == (MOPTA08, "COBYLA", f"{runs.num_feasible}/1")
    report = write_report(evidence, judge(evidence), {"mopta08": table}, figures)
    assert "### 9. MOPTA08: cannot be told" in report
    assert "![MOPTA08](figures/mopta08.png)" in report


def test_the_report_is_right_without_any() -> None:
    """No figure and no table, and the claim says what is missing."""
    evidence = Evidence({})
    assert make_figures(evidence) == {}
    assert "mopta08" not in make_tables(evidence)
    report = write_report(evidence, judge(evidence), {}, [])
    assert "Cannot be told: 0 of 90 runs; its executable is third-party software" in report


def test_the_site_puts_it_beside_the_paper(record: Record, tmp_path: Path) -> None:
    """The page of the problem has the paper's numbers and that of the record."""
    (tmp_path / "claims.json").write_bytes(encode_claims(judge(Evidence({})), []))
    page = build(make_board([record], load_references()), paper=tmp_path)[
        f"problem/{MOPTA08}.html"
    ].decode()
    assert "In the paper" in page
    assert "238.8" in page
    assert "11/30" in page
    assert "221.0700227" in page

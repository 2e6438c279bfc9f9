"""Report, figures and tables from invented evidence and from small real records."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cbo_suite.campaign import run_tasks
from cbo_suite.cli import main
from cbo_suite.files import write_whole
from cbo_suite.paper.build import build, stale_texts
from cbo_suite.paper.claims import judge
from cbo_suite.paper.evidence import Evidence, read_runs
from cbo_suite.paper.experiments import KEANE, MOPTA08, PERTURBATIONS, ROVER
from cbo_suite.paper.measurements import (
    FEASIBILITY,
    measure_feasibility,
    read_measurements,
    write_measurement,
)
from cbo_suite.paper.published import published_numbers
from cbo_suite.paper.report import write_report
from cbo_suite.paper.tables import Table, make_tables
from cbo_suite.tasks import make_tasks
from tests.paper.invented import invent_evidence

# Two figures, one with the map: enough to compare bytes, and drawn in seconds.
FEW = [(KEANE, id_) for id_ in PERTURBATIONS] + [(ROVER, "scbo")]


def contents(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_two_builds_are_equal_to_the_byte(tmp_path: Path) -> None:
    """Report, claims, figures and tables; fonts in PDF stay TrueType."""
    whole = invent_evidence(right=True)
    evidence = whole._replace(runs={pair: whole.runs[pair] for pair in FEW})
    build(evidence, tmp_path / "one")
    build(evidence, tmp_path / "two")
    one, two = contents(tmp_path / "one"), contents(tmp_path / "two")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert stale_texts(evidence, tmp_path / "one") == []
    (tmp_path / "one" / "report.md").write_bytes(one["report.md"].replace(b"holds", b"hold", 1))
    [stale] = stale_texts(evidence, tmp_path / "one")
    assert "report.md is not what the records give" in stale
    assert {"report.md", "claims.json", "figures/rover.pdf", "figures/rover.png"} <= one.keys()
    assert {"tables/restarts.tex", "tables/batch-gp.md", "tables/feasibility.md"} <= one.keys()
    assert b"/CIDFontType2" in one["figures/perturbation.pdf"]
    assert b"CreationDate" not in one["figures/perturbation.pdf"]
    assert b"Software" not in one["figures/perturbation.png"]


def test_the_report_tells_every_claim() -> None:
    """What the paper says, what was measured, the verdict, and a reason where it fails."""
    evidence = invent_evidence(right=False)
    judgements = judge(evidence)
    text = write_report(evidence, judgements, make_tables(evidence), ["physics"])
    for judgement in judgements:
        claim = judgement.claim
        assert f"### {claim.number}. {claim.title}: {judgement.verdict}\n" in text
        assert claim.says in text
    assert "Of 17 claims: 17 not reproduced." in text
    assert "Likely reason: our cEI works on logarithms" in text
    assert "Likely reason: the paper's terrains" in text
    assert "![Physics problems](figures/physics.png)" in text
    assert "nan" not in text.lower()


def test_the_lunar_table_stands_beside_the_paper_s() -> None:
    """Rewards, not objectives; methods that are never feasible are not available."""
    table = make_tables(invent_evidence(right=True))["lunar"]
    rows = {(row[0], row[1]): row[2:] for row in table.rows}
    assert list(table.columns[2:]) == ["SCBO", "cEI", "COBYLA", "CMA-ES", "random search"]
    assert rows["10", "Feasible"][0] == "28/30 (28/30)"
    assert rows["10", "Best"][4] == "NA (NA)"
    assert rows["50", "Feasible"][4] == "0/10 (0/30)"
    assert rows["30", "Median"][0].endswith("(311.8)")
    assert float(rows["30", "Median"][0].split()[0]) == pytest.approx(311.8, abs=0.3)


def test_tables_in_latex() -> None:
    """Letters that LaTeX would take for its own are escaped."""
    table = Table("50 % of a_b", ("a", "b & c"), [("x_1", "1 ± 2")])
    assert table.latex().splitlines()[3:] == [
        r"a & b \& c \\",
        r"\midrule",
        r"x\_1 & 1 $\pm$ 2 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert table.markdown() == "| a | b & c |\n| --- | ---: |\n| x_1 | 1 ± 2 |\n"


def test_published_numbers() -> None:
    """A sample of the paper's numbers, and the size of its tables."""
    numbers = published_numbers()
    row = numbers.problems["lunar-lander-m50-v1"].row("cma-es")
    assert (row.best, row.worst, row.median, row.feasible) == (295.7, 256.3, 274.5, 11)
    assert numbers.problems[MOPTA08].row("scbo").best == 236.7
    assert len(numbers.batch_gp.cells) == 16
    last = numbers.batch_gp.cells[-1]
    assert (last.models, last.points, last.cholesky[0], last.batched[0]) == (
        100,
        8000,
        2303.86,
        144.12,
    )


def test_real_records_become_evidence(tmp_path: Path) -> None:
    """Runs of the planned protocol count, others do not; the traces are those of the records."""
    tasks = make_tasks(["toy-2d-v1"], ["random-search", "sobol-search"], range(2))
    odd = make_tasks(["toy-2d-v1"], ["cobyla"], range(2), budget=20)
    list(run_tasks([*tasks, *odd], tmp_path, jobs=1))
    runs = read_runs(tmp_path)
    assert runs.keys() == {("toy-2d-v1", "random-search"), ("toy-2d-v1", "sobol-search")}
    own = runs["toy-2d-v1", "random-search"]
    assert own.seeds == [0, 1]
    assert own.best.shape == own.violation.shape == (2, 100)
    assert np.all(np.diff(own.best[~np.isnan(own.best).any(axis=1)]) <= 0)
    assert own.n_init == 10
    assert own.largest >= np.nanmax(own.best)
    assert all(seconds is not None for seconds in own.seconds)


def test_feasibility_is_counted_and_read_back(tmp_path: Path) -> None:
    """The count is that of the seed, and about what half a ball gives."""
    found = measure_feasibility(300_000, seed=1)
    assert found == measure_feasibility(300_000, seed=1)
    assert found.feasible <= 20
    write_measurement(tmp_path, FEASIBILITY, found)
    assert read_measurements(tmp_path).feasibility == found
    write_whole(tmp_path / "restarts.json", b'{"problems": 3}')
    result = CliRunner().invoke(
        main, ["paper", "build", "--measurements", str(tmp_path), "--runs", str(tmp_path)]
    )
    assert result.exit_code == 1
    assert "restarts.json is no file of measurements" in result.output


def test_build_without_any_runs(tmp_path: Path) -> None:
    """Nothing can be told, and that is what the report says."""
    judgements = build(Evidence({}), tmp_path)
    assert {judgement.verdict for judgement in judgements} == {"cannot be told"}
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert claims["summary"] == "17 cannot be told"
    assert claims["figures"] == []
    assert not (tmp_path / "figures").exists()

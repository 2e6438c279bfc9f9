"""From records and measurements to a folder with the report, figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cbo_suite.files import write_whole
from cbo_suite.leaderboard import differences
from cbo_suite.paper.claims import Judgement, judge
from cbo_suite.paper.consistency import check_consistency
from cbo_suite.paper.evidence import Evidence, read_runs
from cbo_suite.paper.figures import make_figures
from cbo_suite.paper.measurements import read_measurements
from cbo_suite.paper.report import encode_claims, write_report
from cbo_suite.paper.tables import make_tables
from cbo_suite.plots import save


def gather_evidence(runs: Path, measurements: Path) -> Evidence:
    """Read all runs and measurements, and check that SCBO restarts as it should.

    Raises:
        RecordError: A file is not what it should be.
    """
    return Evidence(read_runs(runs), read_measurements(measurements), check_consistency())


def build(evidence: Evidence, out: Path) -> list[Judgement]:
    """Write the report, figures and tables; equal evidence gives equal bytes.

    Args:
        evidence: What was measured.
        out: Folder for `report.md`, `claims.json`, `figures/` and `tables/`.

    Returns:
        What came of the claims.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    judgements, figures = judge(evidence), make_figures(evidence)
    for id_, figure in figures.items():
        for suffix in (".pdf", ".png"):
            save(figure, out / "figures" / f"{id_}{suffix}")
    for name, data in _texts(evidence, judgements, list(figures)).items():
        write_whole(out / name, data)
    return judgements


def stale_texts(evidence: Evidence, out: Path) -> list[str]:
    """Say which files but figures, which other machines may draw differently, are out of date."""
    return differences(_texts(evidence, judge(evidence), list(make_figures(evidence))), out)


def _texts(
    evidence: Evidence, judgements: Sequence[Judgement], figures: Sequence[str]
) -> dict[str, bytes]:
    """Write report, claims and tables: name to content."""
    tables = make_tables(evidence)
    texts = {
        "report.md": write_report(evidence, judgements, tables, figures).encode(),
        "claims.json": encode_claims(judgements, figures, tables),
    }
    for id_, table in tables.items():
        texts[f"tables/{id_}.md"] = f"{table.title}\n\n{table.markdown()}".encode()
        texts[f"tables/{id_}.tex"] = table.latex().encode()
    return texts

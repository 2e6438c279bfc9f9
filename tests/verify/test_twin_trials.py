"""What the documentation says of twins is what the trials on file came to."""

from __future__ import annotations

from pathlib import Path

from tests.verify.twin_trials import CHEATS, HONEST, plan, read_results


def test_trials_are_as_documented() -> None:
    """Every cheat is caught, and of 100 honest trials at most two are suspicious."""
    results = read_results()
    assert set(results) == {trial.name for trial in plan()}
    suspicious: dict[str, list[bool]] = {name.partition("/")[0]: [] for name in CHEATS | HONEST}
    for name, result in results.items():
        suspicious[name.partition("/")[0]].append(result.suspicious)
    assert all(all(suspicious[name]) for name in CHEATS)
    honest = [found for name in HONEST for found in suspicious[name]]
    assert len(honest) == 100
    assert sum(honest) <= 2
    page = Path(__file__).parents[2] / "docs" / "submit-results.md"
    said = " ".join(page.read_text("utf-8").split())
    assert f"accused in {sum(honest)} of 100 trials" in said

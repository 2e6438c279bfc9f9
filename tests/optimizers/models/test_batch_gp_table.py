"""The benchmark's table of batch Gaussian processes, at sizes that take seconds."""

import pytest

from tests.benchmarks import batch_gp_table


@pytest.mark.slow
def test_all_sides_predict_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours, GPyTorch's factors and its conjugate gradients, each with times and errors."""
    monkeypatch.setattr(batch_gp_table, "SIZES", [(2, 60)])
    monkeypatch.setattr(batch_gp_table, "TEST_POINTS", 300)
    rows = list(batch_gp_table.table_rows(quick=False, full=False))
    assert [row["what"] for row in rows] == ["2 x 60 ours", "2 x 60 cholesky", "2 x 60 cg"]
    for row in rows:
        assert min(row["training"], row["prediction"], row["sampling"]) > 0.0
        # The paper's largest errors of conjugate gradients are a few hundredths.
        assert max(row["mean_mae"], row["variance_mae"]) < (0.05 if "cg" in row["what"] else 1e-3)
    [cell] = batch_gp_table.make_table(rows).cells
    assert (cell.models, cell.points) == (2, 60)
    assert cell.batched.training == rows[2]["training"]

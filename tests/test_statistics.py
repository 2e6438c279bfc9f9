"""Statistics against SciPy, statsmodels and known coverage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from cbo_suite.statistics import (
    bootstrap_indices,
    bootstrap_interval,
    friedman,
    holm,
    paired_wilcoxon,
    probability_of_superiority,
    wilson_interval,
)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=200, deadline=None)
def test_wilson_agrees_with_statsmodels(case):
    """To rounding, and never outside of what a probability can be."""
    successes, trials = case
    expected = proportion_confint(successes, trials, alpha=0.05, method="wilson")
    interval = wilson_interval(successes, trials)
    assert interval == pytest.approx(expected, abs=1e-12)
    assert 0.0 <= interval.low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= interval.high <= 1.0


def test_wilson_without_trials_knows_nothing():
    """No runs, no knowledge."""
    assert wilson_interval(0, 0) == (0.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_holm_agrees_with_statsmodels(p_values):
    """To rounding, in the order given."""
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected, abs=1e-12)


def test_holm_passes_over_what_was_not_tested():
    """NaN stays NaN and is no comparison."""
    adjusted = holm([0.01, np.nan, 0.04])
    assert adjusted[[0, 2]] == pytest.approx([0.02, 0.04])
    assert np.isnan(adjusted[1])


@given(st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_wilcoxon_friedman_and_superiority(seed):
    """Against SciPy, and against the count of pairs."""
    random = np.random.default_rng(seed)
    ranks = stats.rankdata(random.integers(0, 8, size=(4, 15)), axis=0)
    if (ranks[0] != ranks[1]).any():
        assert paired_wilcoxon(ranks[0], ranks[1]) == pytest.approx(
            stats.wilcoxon(ranks[0], ranks[1]).pvalue, abs=1e-12
        )
    pairs = [(a < b) + 0.5 * (a == b) for a in ranks[0] for b in ranks[1]]
    assert probability_of_superiority(ranks[0], ranks[1]) == pytest.approx(np.mean(pairs))
    scores = random.normal(size=(12, 4))
    result = friedman(scores)
    assert result.p_value == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue, abs=1e-12)
    assert result.mean_ranks.sum() == pytest.approx(10.0)


def test_the_same_outcomes_do_not_differ():
    """Where SciPy has no answer, the answer is no difference."""
    assert paired_wilcoxon(np.ones(5), np.ones(5)) == 1.0
    assert friedman(np.ones((10, 3))).p_value == 1.0


def test_the_critical_difference_of_demsar():
    """Table 5 of Demsar (2006) gives q = 2.343 for k = 3 and 2.728 for k = 5."""
    for k, q in ((3, 2.343), (5, 2.728)):
        scores = np.random.default_rng(0).normal(size=(14, k))
        expected = q * np.sqrt(k * (k + 1) / (6 * 14))
        assert friedman(scores).critical_difference == pytest.approx(expected, abs=2e-3)


def test_the_bootstrap_covers():
    """The 95 % interval of a mean of 30 covers in 93 to 97 % of 500 samples."""
    random = np.random.default_rng(3)
    covered = 0
    for _ in range(500):
        low, high = bootstrap_interval(
            random.normal(size=30), lambda drawn: drawn.mean(axis=1), resamples=1000
        )
        covered += low <= 0.0 <= high
    assert 0.92 <= covered / 500 <= 0.97


def test_resamples_are_shared_between_optimizers():
    """The draw depends on the number of seeds and nothing else."""
    assert np.array_equal(bootstrap_indices(30, 100, 0), bootstrap_indices(30, 100, 0))
    assert bootstrap_indices(30, 100, 0).max() == 29

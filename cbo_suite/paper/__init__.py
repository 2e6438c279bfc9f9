"""The paper, reproduced: its experiments, its figures and tables, and a verdict on every claim.

- experiments: which runs there are to be, in which order, and what each is needed for
- progress: which of them there are
- measurements: what is measured apart from the runs
- evidence: all that was measured, as arrays
- comparisons: the tests that sentences are decided by
- claims: the seventeen claims, and their verdicts
- consistency: the check of SCBO's restarts
- published: the numbers that the paper prints
- figures, tables, report, build: what is written
"""

from cbo_suite.paper.experiments import ARTEFACTS, STAGES, pair_tasks, stage_tasks

__all__ = ["ARTEFACTS", "STAGES", "pair_tasks", "stage_tasks"]

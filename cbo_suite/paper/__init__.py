"""The paper, reproduced: its experiments, its figures and tables, and a verdict on every claim.

experiments   which runs there are to be, in which order, and what each is needed for
progress      which of them there are
"""

from cbo_suite.paper.experiments import ARTEFACTS, STAGES, pair_tasks, stage_tasks

__all__ = ["ARTEFACTS", "STAGES", "pair_tasks", "stage_tasks"]

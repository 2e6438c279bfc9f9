"""The optimizers of the suite.

This table is all that listing needs: it imports none of the optimizers.
"""

from __future__ import annotations

from cbo_suite.protocols import OptimizerEntry

OPTIMIZERS: dict[str, OptimizerEntry] = {
    "random-search": OptimizerEntry(
        "cbo_suite.optimizers.random_search:RandomSearch", "Uniform random points"
    ),
    "sobol-search": OptimizerEntry(
        "cbo_suite.optimizers.random_search:SobolSearch", "Scrambled Sobol points"
    ),
    "cobyla": OptimizerEntry(
        "cbo_suite.optimizers.cobyla:Cobyla", "Linear models on a simplex (SciPy)"
    ),
    "cobyqa": OptimizerEntry(
        "cbo_suite.optimizers.cobyla:Cobyqa", "Quadratic models in a trust region (SciPy)"
    ),
    "cma-es": OptimizerEntry(
        "cbo_suite.optimizers.cma_es:CmaEs", "CMA-ES with the death penalty (pycma)", "cma"
    ),
    "cma-es-violation": OptimizerEntry(
        "cbo_suite.optimizers.cma_es:CmaEs",
        "CMA-ES, infeasible points ranked by violation (pycma)",
        "cma",
        {"handling": "violation"},
    ),
    "cma-es-al": OptimizerEntry(
        "cbo_suite.optimizers.cma_es:CmaEs",
        "CMA-ES with an augmented Lagrangian (pycma)",
        "cma",
        {"handling": "augmented-lagrangian"},
    ),
    "scbo": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO: trust region, transforms, Thompson sampling",
        "scbo",
    ),
    "scbo-ei": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO with expected improvement",
        "scbo",
        {"acquisition": "ei"},
    ),
    "scbo-global": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO without trust region",
        "scbo",
        {"trust_region": False},
    ),
    "scbo-ei-global": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO with expected improvement, without trust region",
        "scbo",
        {"acquisition": "ei", "trust_region": False},
    ),
    "scbo-untransformed": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO without transforms",
        "scbo",
        {"copula": False, "bilog": False},
    ),
    "scbo-untransformed-ei": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO with expected improvement, without transforms",
        "scbo",
        {"acquisition": "ei", "copula": False, "bilog": False},
    ),
    "scbo-untransformed-global": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO without transforms and trust region",
        "scbo",
        {"copula": False, "bilog": False, "trust_region": False},
    ),
    "scbo-untransformed-ei-global": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO with expected improvement, without transforms and trust region",
        "scbo",
        {"acquisition": "ei", "copula": False, "bilog": False, "trust_region": False},
    ),
    "scbo-copula-only": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO that transforms the objective only",
        "scbo",
        {"bilog": False},
    ),
    "scbo-bilog-only": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO that transforms the constraints only",
        "scbo",
        {"copula": False},
    ),
    "scbo-no-perturbation": OptimizerEntry(
        "cbo_suite.optimizers.scbo:SCBO",
        "SCBO whose candidates leave the centre in every variable",
        "scbo",
        {"perturbation": False},
    ),
    "cei": OptimizerEntry(
        "cbo_suite.optimizers.cei:CEI", "Constrained expected improvement", "scbo"
    ),
    "cei-transformed": OptimizerEntry(
        "cbo_suite.optimizers.cei:CEI",
        "Constrained expected improvement on transformed values",
        "scbo",
        {"transformed": True},
    ),
    "slack": OptimizerEntry(
        "cbo_suite.optimizers.slack:Slack", "Slack-variable augmented Lagrangian", "scbo"
    ),
    "slack-transformed": OptimizerEntry(
        "cbo_suite.optimizers.slack:Slack",
        "Slack-variable augmented Lagrangian on transformed values",
        "scbo",
        {"transformed": True},
    ),
    "pesc": OptimizerEntry(
        "cbo_suite.optimizers.pesc:PESC", "Predictive entropy search with constraints", "scbo"
    ),
    "pesc-transformed": OptimizerEntry(
        "cbo_suite.optimizers.pesc:PESC",
        "Predictive entropy search with constraints on transformed values",
        "scbo",
        {"transformed": True},
    ),
    "cmes-ibo": OptimizerEntry(
        "cbo_suite.optimizers.cmes_ibo:CMESIBO", "Constrained max-value entropy search", "scbo"
    ),
    "egobox": OptimizerEntry(
        "cbo_suite.optimizers.egobox:Egobox",
        "Log expected improvement, constraints by their means (egobox)",
        "egobox",
    ),
    "optuna-gp": OptimizerEntry(
        "cbo_suite.optimizers.optuna_samplers:OptunaGP",
        "Log constrained expected improvement (Optuna)",
        "optuna",
    ),
    "optuna-tpe": OptimizerEntry(
        "cbo_suite.optimizers.optuna_samplers:OptunaTPE",
        "Tree-structured Parzen estimators with constraints (Optuna)",
        "optuna",
    ),
    "botorch-logcei": OptimizerEntry(
        "cbo_suite.optimizers.botorch_logcei:BotorchLogCEI",
        "Log constrained expected improvement (BoTorch)",
        "botorch",
    ),
    "isres": OptimizerEntry(
        "cbo_suite.optimizers.isres:Isres",
        "Evolution strategy with stochastic ranking (pymoo)",
        "pymoo",
    ),
    "nomad": OptimizerEntry(
        "cbo_suite.optimizers.nomad:Nomad",
        "Mesh adaptive direct search, progressive barrier (NOMAD)",
        "nomad",
    ),
    "bayesqp": OptimizerEntry(
        "cbo_suite.optimizers.bayesqp:BayeSQP",
        "Sequential quadratic programming on Gaussian processes (bayesqp)",
        "bayesqp",
    ),
    "furbo": OptimizerEntry(
        "cbo_suite.optimizers.furbo:FuRBO",
        "Trust regions placed by where feasible points are expected",
        "scbo",
    ),
}

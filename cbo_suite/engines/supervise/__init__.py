"""Runs in processes of their own, each ended within its limits: a fork server, guards, children."""

from cbo_suite.engines.supervise.client import ForkServerClient, follow, supervise

__all__ = ["ForkServerClient", "follow", "supervise"]

"""For those who add a problem: its reference values, its golden values, and files to begin with."""

from cbo_suite.authoring.extremes import Effort
from cbo_suite.authoring.golden_values import golden_values
from cbo_suite.authoring.reference_values import derive_reference

__all__ = ["Effort", "derive_reference", "golden_values"]

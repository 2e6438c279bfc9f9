"""Where the references were documented to be; they stand in `cbo_suite.scoring`."""

from cbo_suite.scoring import Reference, load_references

__all__ = ["Reference", "load_references"]

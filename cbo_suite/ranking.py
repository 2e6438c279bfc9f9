"""Where `make_board` was documented to be; it stands in `cbo_suite.scoring`."""

from cbo_suite.scoring import make_board

__all__ = ["make_board"]

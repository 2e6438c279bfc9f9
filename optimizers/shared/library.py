"""Libraries of other people, imported when an optimizer that needs one is made."""

from __future__ import annotations

import importlib
import warnings
from importlib.metadata import version
from typing import Any, NamedTuple

from cbo_suite.errors import MissingExtra


class Library(NamedTuple):
    """A library that an optimizer is made of.

    Attributes:
        module: The name to import.
        distribution: The name to install.
        tested: The version that the optimizer was written for and is tested with.
        extra: The extra of cbo-suite that installs it.
    """

    module: str
    distribution: str
    tested: str
    extra: str

    def load(self, optimizer: str) -> Any:
        """Import the library for an optimizer of this id; warn if it has another version.

        Raises:
            MissingExtra: It, or something that it needs, is not installed.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(self.module)
        except ImportError as error:
            raise MissingExtra.of(optimizer, self.distribution, self.extra) from error
        found = version(self.distribution).partition("+")[0]
        if found != self.tested:
            warnings.warn(
                f"{optimizer} is tested with {self.distribution} {self.tested}, installed is "
                f"{found}: results may differ from those on the leaderboard",
                RuntimeWarning,
                stacklevel=3,
            )
        return module

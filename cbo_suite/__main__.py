"""`python -m cbo_suite` is the `cbo` command."""

from cbo_suite.cli import main

main(prog_name="cbo")

"""The `cbo` command."""

"""Surrogates that every model-based optimizer shares: batched Gaussian processes and their draws.

Importing a module of this package needs the extra `scbo` (PyTorch), except `transforms`.
"""

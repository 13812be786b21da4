"""Onoma: from any biomedical name to the concept it means."""

from onoma._version import __version__

__all__ = ["__version__"]

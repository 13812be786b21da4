"""Whole tables of mentions to concepts (`map_table`): any size, any number of processes, stopped and resumed."""

from onoma.mapping.asking import Asking
from onoma.mapping.mapping import MapReport, map_table

__all__ = ["Asking", "MapReport", "map_table"]

"""Whole tables of mentions to concepts (`map_table`): any size, any number of processes, stopped and resumed."""

from onoma.mapping.mapping import MapReport, map_table

__all__ = ["MapReport", "map_table"]

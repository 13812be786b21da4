"""Tables that depend on weights which will be gone: kept in the run folder, so that a resumed run has them too.

A table is made anew at the first batch that it serves, so that nothing of an abandoned run is taken for this one's, and
stays under a name of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from onoma.artifacts import write_file
from onoma.artifacts.arrays import NOT_AN_ARRAY
from onoma.artifacts.system import is_of_system
from onoma.errors import TrainingError
from onoma.training.distributed import broadcast, is_main
from onoma.types import RowArray


def keep_table(file: Path, table: RowArray) -> None:
    """Write a table; of several processes the main one does."""
    if is_main():
        with write_file(file, overwrite=True) as aside, aside.open("wb") as handle:
            np.save(handle, table)


def kept_table(file: Path, what: str, *, shape: tuple[int, int]) -> RowArray:
    """A table that was kept, the same for all processes.

    Args:
        file: In the run folder.
        what: What it is, with when it was made.
        shape: That it must have; it may have more rows.

    Raises:
        TrainingError: it cannot be read, or is of another run.
    """
    return broadcast(_read(file, what, shape) if is_main() else np.empty(0, np.int64))


def _read(file: Path, what: str, shape: tuple[int, int]) -> RowArray:
    try:
        table: RowArray = np.load(file, allow_pickle=False)
    except NOT_AN_ARRAY as error:
        if is_of_system(error):
            raise
        raise TrainingError(
            f"the {what} cannot be read ({error}), and with the weights of now they would be others. Remove "
            f"{file.parent} to begin anew."
        ) from None
    if table.shape[1:] != shape[1:] or len(table) < shape[0]:
        raise TrainingError(f"{file} belongs to another run. Remove {file.parent} to begin anew.")
    return table

"""Files of texts under sorted keys, of which a few are read without touching the others.

::

    NAME.COLUMN.utf8, NAME.COLUMN.offsets.npy    a `StringColumn` for each column
    NAME.keys.npy                                the keys, sorted; written last

There are many such files in a large run, and each task reads a little of every one: they are memory-mapped while they
are looked into, and no longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from onoma.artifacts import write_file
from onoma.artifacts.arrays import MAKE_AGAIN, load_array
from onoma.errors import DamagedArtifactError
from onoma.linking.strings import StringColumn, data_file, offsets_file
from onoma.mapping.keys import KEY_TYPE, KeyArray


class KeyedTexts:
    """Texts under keys, as `write` left them.

    Args:
        name: Path of the files without their endings.
        fix: What to do about damaged ones.

    Attributes:
        keys: Sorted, each once, memory-mapped.

    Raises:
        DamagedArtifactError: what lies there is not what `write` left.
    """

    def __init__(self, name: Path, *, fix: str = MAKE_AGAIN) -> None:
        self._name, self._fix = name, fix
        self.keys: KeyArray = np.asarray(load_array(_keys_file(name), (KEY_TYPE,), 1, fix=fix))

    @staticmethod
    def exists(name: Path) -> bool:
        """Whether the files are there, whole."""
        return _keys_file(name).exists()

    @staticmethod
    def write(name: Path, keys: KeyArray, columns: Mapping[str, Sequence[str]]) -> None:
        """Write the files; each appears only when it is whole, and that of the keys after the others.

        Args:
            name: Path of the files without their endings.
            keys: Sorted, each once.
            columns: A text for each key.
        """
        for column, texts in columns.items():
            strings, place = StringColumn.from_strings(texts), (name.parent, f"{name.name}.{column}")
            with write_file(data_file(*place), overwrite=True) as aside:
                strings.data.tofile(aside)
            _save(offsets_file(*place), strings.offsets)
        _save(_keys_file(name), keys.astype(KEY_TYPE, copy=False))

    def column(self, column: str) -> StringColumn:
        """The texts of a column, memory-mapped.

        Raises:
            DamagedArtifactError: what lies there is not what `write` left.
        """
        texts = StringColumn.open(self._name.parent, f"{self._name.name}.{column}", fix=self._fix)
        if len(texts) != len(self.keys):
            raise self._damaged(column, f"{len(texts):,} texts for {len(self.keys):,} keys")
        return texts

    def _damaged(self, column: str, reason: str) -> DamagedArtifactError:
        file = data_file(self._name.parent, f"{self._name.name}.{column}")
        return DamagedArtifactError(f"{file} is damaged ({reason}). {self._fix}")

    def read(self, column: str, rows: Sequence[int] | slice) -> list[str]:
        """Some texts of a column.

        Raises:
            DamagedArtifactError: they are no text.
        """
        texts = self.column(column)
        try:
            return texts[rows] if isinstance(rows, slice) else [texts[row] for row in rows]
        except UnicodeDecodeError as error:
            raise self._damaged(column, str(error)) from None

    def n_bytes(self, column: str) -> int:
        """How much text a column has."""
        return len(self.column(column).data)


def _keys_file(name: Path) -> Path:
    return name.with_name(f"{name.name}.keys.npy")


def _save(path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    with write_file(path, overwrite=True) as aside, aside.open("wb") as handle:
        np.save(handle, array)

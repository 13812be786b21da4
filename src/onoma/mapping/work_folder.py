"""The work of a run, in a hidden folder beside its output, so that a run that was killed goes on where it was.

::

    .OUTPUT.map/
    ├── settings.json       what the work is: input, linker, options; other settings are other work
    ├── abbreviations.json  the table of abbreviations, if there is one: long forms by short form
    ├── lock                held by the process at work
    ├── mentions/N.*        mentions of part N of the input that no part before had
    ├── reading.json        when all are there: rows, parts, tasks, columns
    ├── answers/SHA/N.*     links of the mentions of task N, by the digest of the settings
    ├── written/N.*         part N of the output; N.json when it is there: its counts
    ├── whole               the output, put together
    └── done                it is about to be moved to its place: which file that is, and what the run came to

Every file appears only when it is whole, and none is changed afterwards. Answers lie by what they were made with: a
worker that outlived a run of other settings must not give this one its own.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from onoma.artifacts import write_text_atomically
from onoma.artifacts.files import fsync_names, publish
from onoma.artifacts.locking import check_system, open_locked
from onoma.errors import (
    ArtifactExistsError,
    DamagedArtifactError,
    InputError,
    MismatchError,
    UnavailableError,
    first_line,
)
from onoma.linking.asking import Asking
from onoma.linking.expansion import AbbreviationTable
from onoma.linking.filters import Filters
from onoma.linking.mentions import Preparation
from onoma.mapping.work_records import Counts, Finished, ReadInput, Settings, WrittenPart

Said = TypeVar("Said")

_OWN = 0o700
"""Mode of folders with mentions, which may be of patients: nobody else reads them, whatever their output may be."""
_ENTRIES = ("reading.json", "answers", "written", "mentions", "whole", "settings.json", "abbreviations.json", "done")
"""What lies in the folder besides the lock, in the order in which it is thrown away."""


class WorkFolder:
    """Where the files of a run lie; see the module.

    Args:
        folder: The hidden folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers: Path | None = None

    @classmethod
    def beside(cls, output: Path) -> WorkFolder:
        """The folder of the work that makes this output.

        Raises:
            InputError: no folder can have such a name.
        """
        folder = output.with_name(f".{output.name}.map")
        try:
            folder.lstat()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                raise InputError(
                    "the name is too long: until the output is whole, a folder of five more characters lies beside it",
                    path=output,
                    fix="choose a shorter one",
                ) from None
        return cls(folder)

    @property
    def fix(self) -> str:
        """What to do about damage."""
        return f"Remove {self.folder} to start anew."

    def damaged(self, file: Path, reason: str) -> DamagedArtifactError:
        """The error for a file that is not what was written."""
        return DamagedArtifactError(f"{file} is damaged ({reason}). {self.fix}")

    def _read_json(self, file: Path) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise self.damaged(file, str(error)) from None
        return found

    @property
    def settings(self) -> Settings | None:
        """What the work is, if any was begun."""
        found = self._read_json(self.folder / "settings.json")
        try:
            return None if found is None else _typed(Settings, found)
        except ValidationError:
            raise MismatchError(
                f"{self.folder} holds unfinished work of another version of Onoma. Remove that folder to start anew."
            ) from None

    @property
    def begun(self) -> Settings:
        """What the work is that was begun.

        Raises:
            DamagedArtifactError: it is gone.
        """
        settings = self.settings
        if settings is None:
            raise self.removed()
        return settings

    @property
    def preparation(self) -> Preparation:
        """What mentions go through before they are linked."""
        settings, definitions = self.begun, self._read_json(self.folder / "abbreviations.json")
        if definitions is None and settings.abbreviations is not None:
            raise self.removed()
        table = AbbreviationTable(definitions or {}, {}) if settings.abbreviations is not None else None
        return Preparation(
            table=table,
            finder=settings.finder,
            composites=settings.composites,
            spelling=settings.spelling,
            strengths=settings.strengths,
            codes=settings.codes,
        )

    @property
    def asking(self) -> Asking:
        """How the linker is asked."""
        asking = self.begun.asking
        if asking is None:
            return Asking()
        raw = json.loads(asking)
        return Asking(**{**raw, "filters": Filters.of(**raw["filters"])})

    @property
    def whole(self) -> Path:
        """The output before it is put in its place."""
        return self.folder / "whole"

    def mentions(self, part: int) -> Path:
        """New mentions of a part of the input, see `onoma.mapping.keyed_texts`."""
        return self.folder / "mentions" / f"{part:06}"

    def answers(self, task: int) -> Path:
        """Links of a task's mentions, see `onoma.mapping.keyed_texts`."""
        if self._answers is None:
            self._answers = self._answers_of(self.begun)
        return self._answers / f"{task:06}"

    def _answers_of(self, settings: Settings) -> Path:
        return self.folder / "answers" / hashlib.sha256(json.dumps(asdict(settings)).encode()).hexdigest()[:16]

    def removed(self) -> DamagedArtifactError:
        """The error for a file that must be there and is not."""
        return DamagedArtifactError(
            f"{self.folder}, or a part of it, was removed while the work went on. Run the command again to start anew."
        )

    def written(self, part: int, suffix: str) -> Path:
        """A part of the output."""
        return self.folder / "written" / f"{part:06}{suffix}"

    @property
    def reading(self) -> ReadInput | None:
        """What `finish_reading` wrote."""
        return self._counted(ReadInput, self.folder / "reading.json")

    def finish_reading(self, read: ReadInput) -> None:
        """Say that all of the input was read."""
        write_text_atomically(self.folder / "reading.json", json.dumps(asdict(read)))

    def written_part(self, part: int) -> WrittenPart | None:
        """What `finish_part` wrote."""
        return self._counted(WrittenPart, self.written(part, ".json"))

    def _counted(self, kind: type[Said], file: Path) -> Said | None:
        found = self._read_json(file)
        try:
            return None if found is None else _typed(kind, found)
        except ValidationError as error:
            raise self.damaged(file, first_line(error)) from None

    def whole_part(self, part: int, suffix: str, written: WrittenPart) -> Path:
        """A part of the output, with all its bytes.

        Raises:
            DamagedArtifactError: it lacks some.
        """
        file = self.written(part, suffix)
        n_bytes = file.stat().st_size if file.is_file() else 0
        if n_bytes != written.n_bytes:
            raise self.damaged(file, f"{n_bytes:,} of {written.n_bytes:,} bytes")
        return file

    def finish_part(self, part: int, written: WrittenPart) -> None:
        """Say that a part of the output is there."""
        write_text_atomically(self.written(part, ".json"), json.dumps(asdict(written)))

    def begin(self, settings: Settings, *, abbreviations: str | None = None, discard: bool) -> None:
        """Begin the work, or go on with it.

        Work of other settings is thrown away if it linked nothing yet.

        Args:
            settings: See `Settings`.
            abbreviations: The table of abbreviations as JSON, if there is one.
            discard: Throw away work of other settings in any case.

        Raises:
            MismatchError: there is unfinished work of other settings.
        """
        may_go = discard or not any((self.folder / "answers").rglob("[!.]*.keys.npy"))
        try:
            there = self.settings
        except (MismatchError, DamagedArtifactError):
            if not may_go:
                raise
            there = None
        if there != settings:
            if there is not None and not may_go:
                only_linker = replace(there, linker=settings.linker) == settings
                fix = "Put the linker back that it was begun with" if only_linker else "Run the command as it was"
                raise MismatchError(
                    f"{self.folder} holds unfinished work with {'another linker' if only_linker else 'other settings'} "
                    f"({there.differences(settings)}). {fix} to finish that work, or start anew "
                    "(--force, overwrite=True)."
                )
            self.clear()
        self._answers = self._answers_of(settings)
        for folder in (self.folder / "mentions", self.folder / "written", self._answers):
            folder.mkdir(mode=_OWN, parents=True, exist_ok=True)
        if abbreviations is not None:
            write_text_atomically(self.folder / "abbreviations.json", abbreviations)
        write_text_atomically(self.folder / "settings.json", json.dumps(asdict(settings), indent=1))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes away; the folder is made if there is none.

        Raises:
            ArtifactExistsError: what is there is not such a folder.
            UnavailableError: another process is at work here, or it is another user's.
        """
        check_system()
        handle = None
        while handle is None:
            self._ensure_own()
            self.folder.mkdir(mode=_OWN, parents=True, exist_ok=True)
            with contextlib.suppress(OSError):  # of a file system without modes
                self.folder.chmod(_OWN)  # it may have been there
            # Whoever was at work here may have finished, and removed the folder, just now.
            with contextlib.suppress(FileNotFoundError):
                try:
                    handle = open_locked(self.folder / "lock")
                except BlockingIOError:
                    raise UnavailableError(
                        f"Another run is at work in {self.folder}. Wait for it, or end it first."
                    ) from None
        with handle:
            yield

    def clear(self) -> None:
        """Throw away what was done. The lock stays with who holds it."""
        # First what says that a stage is done, last what says which work this is, and that it is finished: if we are
        # killed on the way, the next run finds less done, and nothing wrong.
        for name in _ENTRIES:
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _ensure_own(self) -> None:
        try:
            names = [entry.name for entry in self.folder.iterdir()]
        except FileNotFoundError:
            return
        except PermissionError:
            raise UnavailableError(
                f"{self.folder} is closed to you: it holds unfinished work, with its mentions, that only the user it "
                "belongs to can finish. Let them run the command again, or write to another place."
            ) from None
        except NotADirectoryError:
            names = [""]
        known = ("lock", *_ENTRIES)
        begun = (".nfs", *(f".{one}.partial-" for one in known))  # NFS calls so what is removed while it is open
        if any(name not in known and not name.startswith(begun) for name in names):
            raise ArtifactExistsError(
                f"{self.folder} is where the unfinished work would lie, and is something else; it will not be touched. "
                "Move it, or write to another place."
            )

    def finished(self, output: Path) -> Finished | None:
        """What the work came to, if its output was put in its place and only the folder is left.

        Raises:
            ArtifactExistsError: what is there is not such a folder.
        """
        self._ensure_own()
        found = self._read_json(self.folder / "done")
        if found is None or not output.exists():
            return None
        try:
            done = Finished(**{**found, "settings": Settings(**found["settings"]), "counts": Counts(**found["counts"])})
        except (TypeError, KeyError):  # of another version of Onoma
            return None
        there = output.stat()
        return done if (there.st_size, there.st_mtime_ns) == (done.size, done.modified_ns) else None

    def put_in_place(
        self, output: Path, settings: Settings, counts: Counts, *, readable_as: os.stat_result, overwrite: bool
    ) -> None:
        """Make the whole file the output, and remove the folder.

        Args:
            output: Where it shall lie.
            settings: Of the run.
            counts: What became of the table.
            readable_as: The input: a new output has no mode that this has not, nor lets a group read it that is not the
                input's. One that is replaced keeps its own mode.
            overwrite: Replace an output that is there.

        Raises:
            ArtifactExistsError: another process wrote the output meanwhile, and ``overwrite`` is not set.
        """
        made, mode = self.whole.stat(), readable_as.st_mode | stat.S_IRUSR | stat.S_IWUSR
        if made.st_gid != readable_as.st_gid and not readable_as.st_mode & stat.S_IROTH:
            mode &= ~stat.S_IRWXG
        with contextlib.suppress(OSError):  # of a file system without modes
            self.whole.chmod(stat.S_IMODE(made.st_mode & mode))
        there = self.whole.stat()
        done = Finished(settings, there.st_size, there.st_mtime_ns, counts)
        write_text_atomically(self.folder / "done", json.dumps(asdict(done)))
        publish(self.whole, output, overwrite=overwrite)
        fsync_names(output.parent)  # not that after a power cut both are gone
        self.remove()

    def remove(self) -> None:
        """Throw away all of the folder, of which a run that is killed on the way leaves what the next one can read."""
        with contextlib.suppress(OSError):
            self.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def _typed(kind: type[Said], found: object) -> Said:
    """What a file says, each thing of its type.

    Raises:
        ValidationError: it says something else.
    """
    return TypeAdapter(kind).validate_python(found)

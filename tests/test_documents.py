"""What README, docs and EXPERIMENTS tell: links lead somewhere, commands and their options are there."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from onoma.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

CODE = re.compile(r"^```(?s:.*?)^```|^(?: {4}.*\n)+", re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def anchors(page: Path) -> frozenset[str]:
    """As GitHub and MkDocs make them of headings."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", CODE.sub("", page.read_text(encoding="utf-8")), re.M):
        named = re.search(r"\{ ?#([\w-]+) ?\}$", heading)
        text = re.sub(r"\]\([^)]*\)", "]", heading).lower()
        slug = named[1] if named else re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return frozenset(found)


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    lost = []
    for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        if file.startswith("assets/objectives/"):  # drawn when the site is built
            continue
        there = (page.parent / file).resolve() if file else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            lost.append(target)
    assert not lost


def commands(page: Path, program: str) -> Iterator[str]:
    """What stands in code and begins with a program, continued lines put together."""
    text = page.read_text(encoding="utf-8")
    for block in CODE.findall(text):
        for line in re.sub(r"\\?\n +(?=[\[-])", " ", block).splitlines():
            if found := re.match(rf"(?:\$ )?(?:time )?{program}(.*)", line.strip().removeprefix(".venv/bin/")):
                yield found[1].partition("  #")[0]
    for found in re.finditer(rf"`{program}([^`]*)`", text.replace("\n", " ")):
        yield found[1]


def options(words: str) -> list[str]:
    return re.findall(r"(?<![\w-])--?[a-z][a-z-]*", words)


@cache
def root() -> Any:  # click's, or what Typer has of it
    return typer.main.get_command(app)


@pytest.mark.parametrize("name", NAMES)
def test_commands_and_options_are_there(name: str) -> None:
    wrong = []
    for line in commands(ROOT / name, "onoma "):
        command, words = root(), line.replace("\\|", "|").split()
        while hasattr(command, "commands") and words and re.match(r"[a-z][a-z|-]*$", words[0]):
            several = words.pop(0).split("|")
            missing = [word for word in several if word not in command.commands]
            if missing:
                wrong.append((line, missing))
                break
            command = command.commands[several[0]]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        unknown = [option for option in options(" ".join(words)) if option not in known | {"--help"}]
        if unknown:
            wrong.append((line, unknown))
    assert not wrong


@pytest.mark.parametrize("name", NAMES)
def test_scripts_and_targets_of_make_are_there(name: str) -> None:
    scripts = {line.split()[0] for line in commands(ROOT / name, "python benchmarks/")} - {"…"}
    assert not [script for script in scripts if not (ROOT / "benchmarks" / script).is_file()]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {word for line in commands(ROOT / name, "make ") for word in line.split()[:1] if "=" not in word}
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.M)]


@cache
def in_reference() -> tuple[Any, ...]:
    """What the library reference shows: names, those of modules that are shown with all or some of them included."""
    found: list[Any] = []
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name, members in re.findall(r"^::: (\S+)(?:\n    options: \{members: (.*)\})?$", text, re.M):
        shown = pkgutil.resolve_name(name)
        if not inspect.ismodule(shown):
            found.append(shown)
        elif members.startswith("["):
            found += [getattr(shown, member) for member in members.strip("[]").split(", ")]
        elif not members:
            found += [of for of in vars(shown).values() if getattr(of, "__module__", None) == name]
            found += [getattr(shown, of) for of in getattr(shown, "__all__", ())]
    return tuple(found)


def classes_in(annotation: object) -> Iterator[type]:
    if inspect.isclass(annotation) and annotation.__module__.startswith("onoma."):
        yield annotation
    for part in typing.get_args(annotation):
        yield from classes_in(part)


def test_what_functions_of_the_reference_give_is_in_it_too() -> None:
    known = {shown.__name__: shown for shown in in_reference() if inspect.isclass(shown)}  # some are for types alone
    missing = {
        (function.__name__, given.__name__)
        for function in in_reference()
        if inspect.isfunction(function)
        for given in classes_in(typing.get_type_hints(function, localns=known).get("return"))
        if given not in in_reference()
    }
    assert not missing


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("README", "docs/"))])
def test_what_examples_import_is_in_the_reference(name: str) -> None:
    for example in re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(encoding="utf-8"), re.M | re.S):
        for module, names in re.findall(r"^ *from (onoma\S*) import (.*)$", example, re.M):
            for imported in names.split(", "):
                assert getattr(importlib.import_module(module), imported) in in_reference(), imported

"""The catalogue, and the commands that show and fetch it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from file_server import FileServer, serve
from typer.testing import CliRunner

from commands import run
from onoma.cli.app import app
from onoma.errors import ArtifactExistsError, UnavailableError
from onoma.terminology import CatalogueEntry, Terminology, known_formats, known_vocabularies
from onoma.terminology.catalogue.entries import CatalogueEntry as Entry
from onoma.terminology.readers.options import parse_options

OBO = b"""format-version: 1.2

[Term]
id: MONDO:1
name: heart attack
synonym: "myocardial infarction" EXACT []

[Term]
id: HP:1
name: pain
"""
ENTRIES = known_vocabularies()


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=list(ENTRIES))
def test_entry(entry: CatalogueEntry) -> None:
    for address in (entry.page, entry.url):
        if address is not None:
            parsed = urlsplit(address)
            assert parsed.scheme == "https"
            assert parsed.hostname
            assert "." in parsed.hostname
            assert parsed.path.startswith("/")
            assert " " not in address
    if entry.url is not None:
        assert "." in entry.url.rpartition("/")[2], "a file name"
    assert entry.licence
    assert entry.format in known_formats()
    parse_options(known_formats()[entry.format].options, entry.options, entry.format)
    words = shlex.split(entry.import_command("a b.obo"))
    assert words[:7] == ["onoma", "terminology", "import", entry.format, "a b.obo", "-o", entry.name]
    assert words[7::2] == ["--set"] * len(entry.options)


def test_everything_a_user_looks_for_is_there() -> None:
    wanted = {"mondo", "hpo", "doid", "go", "uberon", "cl", "chebi", "efo", "symp", "hgnc", "icd10cm", "cellosaurus"}
    wanted |= {"ncbi-taxonomy", "swiss-prot"}
    by_hand = {name for name, entry in ENTRIES.items() if entry.url is None}
    assert wanted <= set(ENTRIES) - by_hand
    accounts = {"umls", "snomed-ct", "rxnorm", "omop", "loinc"}
    assert by_hand == {*accounts, "icd10", "icd10gm", "ops", "ctd-diseases", "ctd-chemicals"}
    addresses = [entry.url for entry in ENTRIES.values() if entry.url is not None]
    assert len(addresses) == len(set(addresses))


def test_entry_is_fetched_or_got_by_hand() -> None:
    fields = {"name": "x", "title": "X", "page": "https://x.org/", "format": "obo", "licence": "CC0-1.0"}
    with pytest.raises(ValueError, match="either url or by_hand"):
        Entry.model_validate(fields)
    with pytest.raises(ValueError, match="either url or by_hand"):
        Entry.model_validate({**fields, "url": "https://x.org/x", "by_hand": "an account"})


def test_list() -> None:
    shown = run("terminology", "list")
    for name, entry in ENTRIES.items():
        assert name in shown
        assert entry.url is not None or entry.page in shown
    assert "53.0 MB" in shown
    listed = json.loads(run("terminology", "list", "--json"))
    assert [entry["name"] for entry in listed] == list(ENTRIES)
    assert listed[0]["url"] == ENTRIES["mondo"].url
    assert listed[0]["n_bytes"] == ENTRIES["mondo"].n_bytes


@pytest.mark.usefixtures("only_this_machine")
def test_fetch_and_the_command_it_prints(server: FileServer, tmp_path: Path) -> None:
    server.answers["/mondo.obo"] = [serve(OBO)]
    done = CliRunner().invoke(
        app, ["terminology", "fetch", "mondo", "-o", str(tmp_path), "--from", f"{server.url}/mondo.obo?key=1"]
    )
    assert isinstance(done.exception, UnavailableError)  # no such path, with the query
    assert "licence: CC-BY-4.0; https://mondo.monarchinitiative.org/" in done.stderr
    assert "key=1" not in done.stderr
    shown = run("terminology", "fetch", "mondo", "-o", tmp_path, "--from", f"{server.url}/mondo.obo")
    words = shlex.split(shown.rpartition("next: ")[2])
    assert words[:2] == ["onoma", "terminology"]
    words[words.index("-o") + 1] = str(tmp_path / "t")
    run("terminology", *words[2:])
    terminology = Terminology.open(tmp_path / "t")
    assert terminology.concept("MONDO:1").preferred_name == "heart attack"
    assert terminology.info().n_concepts == 1
    assert "unchanged" in run("terminology", "fetch", "mondo", "-o", tmp_path, "--from", f"{server.url}/mondo.obo")


@pytest.mark.usefixtures("only_this_machine")
def test_fetch_and_import(server: FileServer, tmp_path: Path) -> None:
    server.answers["/mondo.obo"] = [serve(OBO)]
    fetched: list[str | Path] = [
        "fetch",
        "mondo",
        "-o",
        tmp_path,
        "--from",
        f"{server.url}/mondo.obo",
        "--import",
        tmp_path / "t",
    ]
    assert "1 concept," in run("terminology", *fetched)
    told = Terminology.open(tmp_path / "t").info()
    assert told.n_concepts == 1
    assert "mondo.obo (obo), licence: CC-BY-4.0" in str(told)
    n_requests = len(server.requests)
    with pytest.raises(ArtifactExistsError):
        run("terminology", *fetched)
    assert len(server.requests) == n_requests  # refused before anything is downloaded
    run("terminology", *fetched, "--force")
    found = json.loads(run("terminology", *fetched, "--force", "--json"))
    assert (found["path"], found["imported"]["n_concepts"]) == (str(tmp_path / "mondo.obo"), 1)
    assert json.loads(run("terminology", *fetched[:-2], "--json"))["imported"] is None
    for licence in ((), ("--licence", "as agreed")):
        run("terminology", "import", "obo", tmp_path / "mondo.obo", "-o", tmp_path / "t", *licence, "--force")
        said = licence[1] if licence else "CC-BY-4.0"
        assert f"licence: {said}\n" in f"{Terminology.open(tmp_path / 't').info()}\n"
    (tmp_path / "mondo.obo").write_bytes(OBO + b"\n")  # another file than the record is of
    run("terminology", "import", "obo", tmp_path / "mondo.obo", "-o", tmp_path / "t", "--force")
    assert "licence: not said" in str(Terminology.open(tmp_path / "t").info())

"""Corpora of annotated mentions, in the formats that they come in, as tables of mentions.

PubTator (`onoma.pairs.pubtator`), BioC as XML or JSON (`onoma.pairs.bioc`), brat (`onoma.pairs.brat`) and BigBIO
(`onoma.pairs.bigbio`) are told apart by what is in the file or folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from onoma.errors import InputError, checked_path
from onoma.files.archives import SourceFile, files_opened
from onoma.files.reading import Reading, check_chosen
from onoma.files.table_rows import PARQUET, ending_of
from onoma.files.text_files import check_is_file, start_of_text
from onoma.files.xml_files import with_root
from onoma.pairs import bigbio, bioc, brat, pubtator
from onoma.pairs.annotations import AROUND, LONGEST_TEXT, Annotation

NIL = "NIL"
"""The code of mentions of no concept."""
_SEVERAL = "mentions of several concepts, left out"
_ELSEWHERE = "mentions that do not stand where their annotation says, whose place in the context is not marked"
_LONG = (
    f"mentions in documents of more than {LONGEST_TEXT:,} characters, whose context is the {AROUND:,} before and after"
)
_TWICE = "documents that came in another file too, read again"
_NOTHING = "files that gave no mention"
_ENDINGS = tuple(f".{ending}{packed}" for ending in ("xml", "json", "jsonl", "parquet") for packed in ("", ".gz"))
"""Of the files of BioC and BigBIO in a folder."""
_TABLE = pl.Schema(
    {
        "mention": pl.String(),
        "concept_id": pl.String(),
        "type": pl.String(),
        "document": pl.String(),
        "start": pl.Int64(),
        "end": pl.Int64(),
        "context": pl.String(),
    }
)


def read_corpus(
    corpus: str | Path,
    reading: Reading | None = None,
    *,
    types: Sequence[str] = (),
    strip_prefix: str = "",
    add_prefix: str = "",
    codes_in: str = "",
    with_context: bool = True,
) -> pl.DataFrame:
    """Read the mentions of a corpus, as `onoma.pairs.read_mentions` reads them from a table.

    Mentions of several concepts are left out and counted, because no single code is right.

    Args:
        corpus: A file in PubTator's, the BioC or BigBIO's format (plain, gzip or alone in a zip), or a folder or
            archive (zip, tar) of brat's files, or of several of BioC or BigBIO.
        reading: Where bad lines go, the notes, the progress (in bytes of all files), and the encoding. Unset: the first
            bad line is refused.
        types: Keep only mentions of these types; empty: all.
        strip_prefix: Prefix to remove from codes that have it, such as "UMLS:".
        add_prefix: Prefix for codes that have no colon then, such as "MESH:".
        codes_in: Where the codes are: the key of an infon of BioC (empty: "identifier", "MESH", "NCBI Gene identifier"
            or the type); in brat's format "notes", "type", or the resource of the normalisations, such as "UMLS"
            (empty: all normalisations); the ``db_name`` of BigBIO (empty: any); the prefix of PubTator's codes, such as
            "MESH" or "RS#" (empty: any).
        with_context: Whether to give the text around each mention.

    Returns:
        A row for each mention: mention, concept_id ("NIL": of no concept), type, document, start, end (Int64,
        characters of the document), context (unless left out: the document, or of one of more than 20,000 characters
        the 2,000 before and after, with the mention between ``<tgt>`` and ``</tgt>``).

    Raises:
        InputError: no such file, no mention, no mention of a type; under "strict" also if a line is bad.
    """
    path = checked_path(corpus)
    reading = Reading() if reading is None else reading
    rows: list[tuple[object, ...]] = []
    there: set[str] = set()
    for one in corpus_annotations(path, reading, codes_in=codes_in):
        there.update(one.types)
        if types and not set(types) & set(one.types):
            reading.note("mentions of other types, left out", 1)
            continue
        if len(one.codes) > 1 or len(one.parts) > 1:
            reading.note(_SEVERAL, 1)
            continue
        code = (one.codes[0].removeprefix(strip_prefix) if one.codes else "") or NIL
        if code != NIL and ":" not in code:
            code = add_prefix + code
        context: tuple[str, ...] = ()
        if with_context:
            reading.note(_ELSEWHERE, not one.is_in_place)
            reading.note(_LONG, one.is_cut)
            context = (one.marked_text,)
        rows.append((one.mention, code, ",".join(one.types), one.document, one.start, one.end, *context))
    check_chosen("type", types, there, path=path, among="the corpus")
    if not rows:
        raise InputError(
            "there is no mention of one concept here",
            path=path,
            expected=f"PubTator's format ({pubtator.EXPECTED}), BioC, BigBIO, or a folder in brat's format",
            found="; ".join(f"{note}: {count:,}" for note, count in reading.notes.items()) or "none at all",
        )
    schema = _TABLE if with_context else pl.Schema(list(_TABLE.items())[:-1])
    return pl.DataFrame(rows, schema=schema, orient="row")


def corpus_annotations(
    corpus: str | Path, reading: Reading | None = None, *, codes_in: str = ""
) -> Iterator[Annotation]:
    """Every mention of a corpus, in its order.

    Args:
        corpus: A file, folder or archive; see `read_corpus`.
        reading: Where bad lines go, and the encoding. Unset: the first bad line is refused.
        codes_in: See `read_corpus`.

    Raises:
        InputError: no such file, nothing in it is a corpus, or as the reader of its format.
    """
    path = checked_path(corpus)
    reading = Reading() if reading is None else reading
    if not path.is_dir():
        check_is_file(path)
    with _files(path) as files:
        if any(file.name.lower().endswith(brat.SUFFIXES) for file in files):
            yield from brat.brat_annotations(files, reading, path=path, codes_in=codes_in)
            return
        before: set[str] = set()
        for file in reading.each(files, path.name):
            documents = set()
            for one in _annotations(file, reading, codes_in):
                documents.add(one.document)
                yield one
            reading.note(_NOTHING, not documents)
            reading.note(_TWICE, len(documents & before))
            before |= documents


@contextmanager
def _files(path: Path) -> Iterator[tuple[SourceFile, ...]]:
    """The files to read: all of brat's, or those of BioC or BigBIO in a folder or archive, or the one file."""
    if path.is_file() and path.name.lower().endswith(brat.SUFFIXES):
        near = (one for one in path.parent.iterdir() if one.stem == path.stem and one.is_file())
        yield tuple(SourceFile(one.name, one) for one in sorted(near))
        return
    with files_opened(path) as files:
        endings = brat.ENDINGS if any(file.name.lower().endswith(brat.SUFFIXES) for file in files) else _ENDINGS
        found = files if len(files) == 1 else tuple(file for file in files if file.name.lower().endswith(endings))
        if not found:
            raise InputError(
                "there is no corpus here",
                path=path,
                expected="files .ann with .txt (brat), .xml or .json (BioC), or .parquet, .jsonl or .json (BigBIO)",
                fix="name the file itself, if it is in PubTator's format; unpack what is packed in it",
            )
        yield found


def _annotations(file: SourceFile, reading: Reading, codes_in: str) -> Iterator[Annotation]:
    if ending_of(file) in PARQUET:
        yield from bigbio.bigbio_annotations(file, reading, database=codes_in)
        return
    first_line = start_of_text(file).partition(b"\n")[0]
    start = first_line[:1]
    if bigbio.is_bigbio(first_line):
        yield from bigbio.bigbio_annotations(file, reading, database=codes_in)
    elif start in (b"<", b"{", b"["):
        if reading.encoding is not None:
            problem = "XML says its encoding itself, and JSON is UTF-8"
            raise InputError(problem, path=file.path, field="encoding", found=reading.encoding, fix="leave it out")
        if start == b"<":
            with_root(file, ("collection",))
        elif start == b"[" and bigbio.is_bigbio_array(file):
            yield from bigbio.bigbio_annotations(file, reading, database=codes_in)
            return
        yield from bioc.bioc_annotations(file, reading, is_xml=start == b"<", code_key=codes_in)
    else:
        yield from pubtator.pubtator_annotations(file, reading, prefix=codes_in)

"""Your own annotated mentions as a benchmark: a linker's concepts, or a terminology's names, are ranked for them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl

from onoma.benchmarks.biosyn import DictionaryLine, Query, merged
from onoma.benchmarks.metrics import DISTINCT
from onoma.benchmarks.tasks import LINKER_TIES, OWN, BenchmarkTask
from onoma.codes import split_codes
from onoma.errors import InputError, checked_path
from onoma.files.table_rows import is_table
from onoma.files.text_files import only_file
from onoma.pairs import MentionFormat, read_mentions
from onoma.pairs.mentions import read_mention_lines, refuse_columns_of_lines, refuse_concept_files
from onoma.terminology import Terminology
from onoma.terminology.terminology import as_terminology
from onoma.training.development import read_dictionary

_COMPOSITE = "of a composite mention in a line id||mention every part must be right; a part is right at k when"
_PROTOCOL = (
    "own: the names of a terminology are ranked by cosine similarity, prepared as in the encoder's training; "
    f"{_COMPOSITE} one of the ids of one of the k best names is among the query's"
)
_LINKER_PROTOCOL = (
    f"own, linker: concepts of the linker's own terminology are ranked; {_COMPOSITE} the id of one of the k best "
    "concepts, or a part of it (split on |), is among the query's"
)


def own_task(
    names: Terminology | str | Path | None = None,
    *,
    cluster: str | None = None,
    context: str | None = None,
    group: str | None = None,
    mention_format: MentionFormat | None = None,
) -> BenchmarkTask:
    """A benchmark whose ``data`` are a file of mentions, as `onoma.pairs.read_mentions` reads them.

    In lines ``id||mention``, a composite mention (several texts separated by ``|``, or by ``+`` if that separates the
    ids too) is measured as in the published protocol. Mentions of no concept ("NIL", "CUI-less", "-1", "0") count only
    in measuring when a calibrated linker answers. Several codes separated by ``|`` are all right, unless that is the
    code of one concept itself (`onoma.codes`).

    Args:
        names: What encoders and baselines choose from: a terminology or its folder, or a file with a line ``id||name``
            for each name. A linker has its own.
        cluster: A column of a table of mentions with their independent sources, such as the document or patient of each
            mention: intervals and p-values are over these. Unset: over distinct mentions.
        context: A column of it with the text around each mention, for a linker that reads it; cells may be empty.
        group: A column of it by whose values accuracy is also measured separately, such as semantic type or section;
            spaces around them are ignored, and mentions with an empty cell are a group of their own.
        mention_format: The names of the columns of mentions and codes, and the encoding.
    """
    is_terminology = names is not None and (isinstance(names, Terminology) or not checked_path(names).is_file())
    terminology = as_terminology(names) if names is not None and is_terminology else None

    def dictionary(_: Path, __: str) -> tuple[list[DictionaryLine], list[Path]]:
        if names is None:
            raise InputError(
                "an encoder or a baseline chooses from names, and none are given",
                field="names",
                fix="give a terminology, or a file with a line id||name for each name (--names)",
            )
        table, source = read_dictionary(terminology or names)
        lines = merged(
            DictionaryLine(text, tuple(split_codes(ids)) if terminology is None else (ids,))
            for text, ids in table.iter_rows()
        )
        return lines, [source] if source.is_file() else []

    return BenchmarkTask(
        name=OWN,
        description="your own annotated mentions",
        splits=("mentions",),
        queries=partial(own_queries, cluster=cluster, context=context, group=group, mention_format=mention_format),
        dictionary=dictionary,
        data_source="--data FILE: a table (mention, concept_id) or lines id||mention; encoders: --names too",
        licence="yours",
        citation="nothing",
        protocol=_PROTOCOL,
        linker_protocol=_LINKER_PROTOCOL,
        tie_rule="of equal scores the name that stands earlier in the terminology comes first",
        linker_tie_rule=LINKER_TIES,
        cutoffs=(1, 5),
        may_be_nil=True,
        clusters=DISTINCT if cluster is None else f"values of {cluster}",
        group=group,
        terminologies={} if terminology is None else {terminology.path.name: terminology.manifest.fingerprint},
    )


def own_queries(
    file: Path,
    _: str = "",
    *,
    cluster: str | None = None,
    context: str | None = None,
    group: str | None = None,
    mention_format: MentionFormat | None = None,
) -> tuple[list[Query], list[Path]]:
    """The mentions of a file, see `own_task`.

    Args:
        file: A table, or lines.
        cluster: A column of the table, see `own_task`.
        context: Likewise.
        group: Likewise.
        mention_format: Likewise.

    Raises:
        InputError: a line or row is bad, or there is none, or columns are named of lines.
    """
    refuse_concept_files(file)
    if file.is_dir():
        raise InputError(
            "one's own mentions are in one file",
            path=file,
            expected="a table, or lines id||mention",
            fix="give the file",
        )
    written = mention_format or MentionFormat()
    reading = written.reading()  # no line left out: a score must not come to be that of fewer mentions
    opened = only_file(file)
    if is_table(opened):
        found = read_mentions(file, reading, context=context, cluster=cluster, group=group, mention_format=written)
        if cluster is not None:
            clusters = found["cluster"].to_list()
            if empty := clusters.count("") + clusters.count(None):
                raise InputError(
                    "mentions without a cluster",
                    path=file,
                    field=cluster,
                    expected="a value for each mention",
                    found=f"{empty:,} empty {'cell' if empty == 1 else 'cells'}",
                    fix="fill them in, or take another column",
                )
        found = found.with_columns(parts=pl.concat_list("mention"))
    else:
        refuse_columns_of_lines(file, written, {"context": context, "cluster": cluster, "group": group})
        lines = read_mention_lines(opened, reading)
        is_part = pl.element().str.strip_chars() != ""
        torn = lines.filter(~pl.col("parts").list.eval(is_part).list.all()).select("line", text="mention")
        expected, problem = "a text on both sides of | and +", "a composite mention with an empty part"
        reading.reject_rows(torn, problem, path=file, field="mention", expected=expected)
        found = lines
    queries = [
        Query(
            row["mention"],
            tuple(row["parts"]),
            frozenset(split_codes(row["concept_id"])),
            cluster=row.get("cluster"),
            context=around if (around := row.get("context")) and around.strip() else None,
            group=(row.get("group") or "").strip() or None,
            label=row["concept_id"] if len(row["parts"]) == 1 else None,
        )
        for row in found.iter_rows(named=True)
    ]
    return queries, [file]

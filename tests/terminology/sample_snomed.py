"""The little ontology of `sample` as a SNOMED CT release: states of components, written as Snapshot, Full or zip."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sample import DEFINITION, NAMES, Sample

COLUMNS = {
    "sct2_Concept": "id effectiveTime active moduleId definitionStatusId",
    "sct2_Description": "id effectiveTime active moduleId conceptId languageCode typeId term caseSignificanceId",
    "sct2_TextDefinition": "id effectiveTime active moduleId conceptId languageCode typeId term caseSignificanceId",
    "sct2_Relationship": "id effectiveTime active moduleId sourceId destinationId relationshipGroup typeId"
    " characteristicTypeId modifierId",
    "der2_cRefset_Language": "id effectiveTime active moduleId refsetId referencedComponentId acceptabilityId",
    "der2_cRefset_Association": "id effectiveTime active moduleId refsetId referencedComponentId targetComponentId",
    "der2_sRefset_SimpleMap": "id effectiveTime active moduleId refsetId referencedComponentId mapTarget",
    "der2_iisssccRefset_ExtendedMap": "id effectiveTime active moduleId refsetId referencedComponentId mapGroup"
    " mapPriority mapRule mapAdvice mapTarget correlationId mapCategoryId",
}
FSN, SYNONYM, TEXT = "900000000000003001", "900000000000013009", "900000000000550004"
US, GB = "900000000000509007", "900000000000508004"
PREFERRED, ACCEPTABLE = "900000000000548007", "900000000000549004"
IS_A, INFERRED, STATED = "116680003", "900000000000011006", "900000000000010007"
SAME_AS, REPLACED_BY = "900000000000527005", "900000000000526001"
CORE = "900000000000207008"
CODES = {"101001": "X:1", "201005": "X:2", "301009": "X:3", "401004": "X:4"}

Row = Sequence[str]
"""id, effectiveTime, active, and the fields after moduleId."""


def description(id: str, concept: str, term: str, kind: str = SYNONYM, language: str = "en", *, state: Row = ()) -> Row:
    time, active = state or ("20200131", "1")
    return id, time, active, concept, language, kind, term, "900000000000448009"


def relationship(id: str, head: str, kind: str, tail: str, *, state: Row = (), characteristic: str = INFERRED) -> Row:
    time, active = state or ("20200131", "1")
    return id, time, active, head, tail, "0", kind, characteristic, "900000000000451002"


def member(id: str, refset: str, component: str, *fields: str, state: Row = ()) -> Row:
    time, active = state or ("20200131", "1")
    return id, time, active, refset, component, *fields


def write_rf2(
    folder: Path,
    contents: Mapping[str, Sequence[Row]],
    kind: str = "Snapshot",
    edition: str = "INT",
    *,
    file_per_language: bool = True,
) -> Path:
    """Write rows as files below ``folder / kind``: all of them for Full, the last of each id for Snapshot."""
    for name, rows in contents.items():
        has_language = name in ("sct2_Description", "sct2_TextDefinition")
        languages = {row[4] for row in rows} if has_language and file_per_language else {"en" if has_language else ""}
        for language in sorted(languages):
            chosen = [row for row in rows if len(languages) == 1 or row[4] == language]
            if kind == "Snapshot":
                last: dict[str, Row] = {}
                for row in sorted(chosen, key=lambda row: row[1]):
                    last[row[0]] = row
                chosen = sorted(last.values(), key=chosen.index)
            below = folder / kind / ("Terminology" if name.startswith("sct2") else "Refset")
            below.mkdir(parents=True, exist_ok=True)
            lines = ["\t".join(COLUMNS[name].split())]
            lines += ["\t".join([*row[:3], CORE, *row[3:]]) for row in chosen]
            ending = "_" if name.startswith("sct2") else ""
            suffix = f"-{language}" if language else ""
            file = below / f"{name}{ending}{kind}{suffix}_{edition}_20240101.txt"
            file.write_bytes("".join(line + "\r\n" for line in lines).encode())
    return folder


CONTENT: dict[str, list[Row]] = {
    "sct2_Concept": [
        ("101001", "20200131", "0", "900000000000074008"),
        ("101001", "20210131", "1", "900000000000074008"),
        ("201005", "20200131", "1", "900000000000074008"),
        ("301009", "20200131", "1", "900000000000074008"),
        ("401004", "20200131", "1", "900000000000074008"),
        ("401004", "20220131", "0", "900000000000074008"),
    ],
    "sct2_Description": [
        description("1110012", "101001", "Heart attack (disease)", FSN),
        description("1111011", "101001", "Myocardial infarction"),
        description("1112016", "101001", "Hart attack"),
        description("1112016", "101001", "Heart attack", state=("20210131", "1")),
        description("1113014", "101001", "MI"),
        description("1114015", "101001", "Cardiac arrest", state=("20200131", "1")),
        description("1114015", "101001", "Cardiac arrest", state=("20230131", "0")),
        description("2110012", "201005", "Heart disease (disease)", FSN),
        description("2111011", "201005", "Heart disease"),
        description("2112016", "201005", "Cardiopathy"),
        description("3110012", "301009", "Ménière (disease)", FSN),
        description("3111011", "301009", NAMES["X:3"][0]),
        description("3112016", "301009", NAMES["X:3"][1], language="ja"),
        description("4110012", "401004", "Coronary (disease)", FSN),
        description("4111011", "401004", "obsolete coronary"),
    ],
    "sct2_TextDefinition": [description("5110012", "101001", DEFINITION, TEXT)],
    "sct2_Relationship": [
        relationship("6110020", "101001", IS_A, "201005"),
        relationship("6111021", "201005", IS_A, "101001", state=("20200131", "1")),
        relationship("6111021", "201005", IS_A, "101001", state=("20210131", "0")),
        relationship("6112029", "301009", IS_A, "201005", characteristic=STATED),
    ],
    "der2_cRefset_Language": [
        member("a1", US, "1112016", PREFERRED),
        member("a2", US, "1111011", ACCEPTABLE),
        member("a3", US, "2111011", PREFERRED),
        member("a4", US, "3111011", PREFERRED),
        member("a5", US, "4111011", PREFERRED),
        member("a6", US, "2112016", PREFERRED, state=("20200131", "1")),
        member("a6", US, "2112016", ACCEPTABLE, state=("20210131", "1")),
        member("b1", GB, "1111011", PREFERRED),
    ],
    "der2_cRefset_Association": [
        member("c1", SAME_AS, "401004", "201005", state=("20220131", "1")),
        member("c1", SAME_AS, "401004", "201005", state=("20230131", "0")),
        member("c2", SAME_AS, "401004", "101001", state=("20230131", "1")),
    ],
}


def _write_snapshot(folder: Path) -> str:
    return str(write_rf2(folder, CONTENT, file_per_language=False))


def _write_full(folder: Path) -> str:
    return str(write_rf2(folder, CONTENT, "Full") / "Full")


def zip_folder(folder: Path, archive: Path) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(folder.rglob("*.txt")):
            target.writestr(zipfile.ZipInfo(f"Release/{path.relative_to(folder).as_posix()}"), path.read_bytes())
    return archive


def _write_zip(folder: Path) -> str:
    write_rf2(folder / "unpacked", CONTENT, "Full")
    write_rf2(folder / "unpacked", CONTENT, "Snapshot")
    write_rf2(folder / "unpacked", CONTENT, "Delta")
    return str(zip_folder(folder / "unpacked", folder / "SnomedCT_InternationalRF2_20240101.zip"))


_SNOMED = Sample(
    "snomed",
    _write_zip,
    {"fully_specified_names": "no"},
    has_relations=True,
    has_types=True,
    has_obsolete=True,
    codes=CODES,
)
SAMPLES = {
    "snomed-snapshot": replace(
        _SNOMED,
        write=_write_snapshot,
        text_file="Snapshot/Terminology/sct2_Description_Snapshot-en_INT_20240101.txt",
        first_line=3,
    ),
    "snomed-full": replace(_SNOMED, write=_write_full),
    "snomed-zip": _SNOMED,
}

"""The little ontology of `sample` as releases of the UMLS and RxNorm come: archives, archives in archives, pieces."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from sample import DEFINITION, Sample

from tiny import zipped

MRCONSO = """\
X:1|ENG|S|L2|PF|S2|N|A2|||C|SRC|SY|C|Myocardial infarction|0|N||
X:1|ENG|P|L1|PF|S1|Y|A1|||C|SRC|PT|C|Heart attack|0|N||
X:1|ENG|S|L3|PF|S3|N|A3|||C|SRC|AB|C|MI|0|N|256|
X:2|ENG|P|L4|PF|S4|Y|A4|||C|SRC|PT|C|Heart disease|0|N||
X:2|ENG|S|L5|PF|S5|Y|A5|||C|SRC|SY|C|Cardiopathy|0|N||
X:3|ENG|P|L6|PF|S6|Y|A6|||C|SRC|PT|C|Ménière's "vertigo" #2|0|N||
X:3|JPN|P|L7|PF|S7|Y|A7|||C|SRCJPN|PT|C|メニエール病|0|N||
"""
MRSTY = "".join(f"X:{number}|T047|B2.2.1.2.1|disease|AT{number}||\n" for number in (1, 2, 3))
# "X:1 is_a X:2": the second (X:1) is to the first (X:2) an is_a.
MRREL = "X:2||CUI|CHD|X:1||CUI|is_a|R1||SRC|SRC||Y|N||\n"
MRDEF = f"X:1|A1|AT4||SRC|{DEFINITION}|N||\n"
TABLES = {"MRCONSO": MRCONSO, "MRSTY": MRSTY, "MRREL": MRREL, "MRDEF": MRDEF}

RXNCONSO = """\
X:1|ENG||||||1|||C|RXNORM|SY|C|Myocardial infarction||N||
X:1|ENG||||||2|||C|RXNORM|IN|C|Heart attack||N|4096|
X:1|ENG||||||3|||C|MMSL|IN|C|MI||N||
X:2|ENG||||||4|||C|RXNORM|IN|C|Heart disease||N||
X:2|ENG||||||5|||C|MMSL|BN|C|Cardiopathy||N||
X:3|ENG||||||6|||C|RXNORM|IN|C|Ménière's "vertigo" #2||N||
X:3|JPN||||||7|||C|MMSL|IN|C|メニエール病||N||
"""
RXNSTY = "".join(f"X:{number}|T047|B2.2.1.2.1|disease|AT{number}||\n" for number in (1, 2, 3, 4))
# Between atoms of X:2 and X:1, of a source other than RxNorm.
RXNREL = "|5|AUI|CHD||3|AUI|is_a|R1||MMSL||||||\n"
RXNATOMARCHIVE = (
    "8||obsolete coronary|2020-01-01|2006-01-01|2020-01-01|C||ENG|2020-01||RXNORM_20|X:4|RXNORM|IN|X:1|\n"
    "9||other source's|2020-01-01|2006-01-01|2020-01-01|C||ENG|2020-01||MMSL_20|X:5|MMSL|IN|X:1|\n"
)
RXNORM_TABLES = {"RXNCONSO": RXNCONSO, "RXNSTY": RXNSTY, "RXNREL": RXNREL, "RXNATOMARCHIVE": RXNATOMARCHIVE}


def cut(name: str, text: str, n_pieces: int = 3) -> dict[str, bytes]:
    """A table in gzip pieces, cut without regard to lines or characters."""
    data = text.encode()
    size = len(data) // n_pieces + 1
    return {
        f"2024AA/META/{name}.RRF.a{chr(ord('a') + number)}.gz": gzip.compress(
            data[number * size : (number + 1) * size], mtime=0
        )
        for number in range(n_pieces)
    }


def full_release(tables: Mapping[str, str] = TABLES) -> dict[str, bytes]:
    """Members of the archive of a full release: MRCONSO and MRREL in pieces, the others whole."""
    whole = {
        f"2024AA/META/{name}.RRF.gz": gzip.compress(text.encode(), mtime=0)
        for name, text in tables.items()
        if name not in {"MRCONSO", "MRREL"}
    }
    first = zipped({**cut("MRCONSO", tables["MRCONSO"]), **whole})
    second = zipped(cut("MRREL", tables["MRREL"], 2)) if "MRREL" in tables else zipped({})
    return {
        "2024AA-full/2024AA.CHK": b"...",
        "2024AA-full/2024aa-1-meta.nlm": first,
        "2024AA-full/2024aa-2-meta.nlm": second,
        "2024AA-full/2024aa-otherks.nlm": b"an archive that is not looked at",
        "2024AA-full/mmsys.zip": b"likewise",
    }


def write_umls(folder: Path) -> str:
    for name, text in TABLES.items():
        (folder / f"{name}.RRF").write_bytes(text.encode())
    return str(folder)


def _write_zip(folder: Path) -> str:
    members = {f"2024AA/META/{name}.RRF": text for name, text in TABLES.items()}
    (folder / "umls-2024AA-metathesaurus-full.zip").write_bytes(
        zipped({"2024AA/README.txt": "", **members, "2024AA/META/MRXW_ENG.RRF": "not read"})
    )
    return str(folder / "umls-2024AA-metathesaurus-full.zip")


def _write_full_release(folder: Path) -> str:
    (folder / "umls-2024AA-full.zip").write_bytes(zipped(full_release()))
    return str(folder / "umls-2024AA-full.zip")


def _write_pieces(folder: Path) -> str:
    for name, text in TABLES.items():
        for member, data in cut(name, text).items():
            place = folder / member
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    return str(folder)


def write_rxnorm(folder: Path) -> str:
    for name, text in RXNORM_TABLES.items():
        (folder / f"{name}.RRF").write_bytes(text.encode())
    return str(folder)


def _write_rxnorm_zip(folder: Path) -> str:
    members = {f"rrf/{name}.RRF": text for name, text in RXNORM_TABLES.items()}
    prescribable = {"prescribe/rrf/RXNCONSO.RRF": RXNCONSO.replace("X:1", "Y:1"), "scripts/oracle/RXNCONSO.ctl": "x"}
    (folder / "RxNorm_full_05062024.zip").write_bytes(zipped({**prescribable, **members}))
    return str(folder / "RxNorm_full_05062024.zip")


_RXNORM = Sample("rxnorm", write_rxnorm, {}, "RXNCONSO.RRF", 2, True, True, has_obsolete=True, has_definitions=False)
SAMPLES = {
    "umls": Sample("umls", write_umls, {}, "MRCONSO.RRF", 2, True, True),
    "umls-zip": Sample("umls", _write_zip, has_relations=True, has_types=True),
    "umls-full-release": Sample("umls", _write_full_release, has_relations=True, has_types=True),
    "umls-pieces": Sample("umls", _write_pieces, has_relations=True, has_types=True),
    "rxnorm": _RXNORM,
    "rxnorm-zip": Sample(
        "rxnorm", _write_rxnorm_zip, has_relations=True, has_types=True, has_obsolete=True, has_definitions=False
    ),
}

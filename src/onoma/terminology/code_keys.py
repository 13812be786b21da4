"""How codes of vocabularies are written, so that "MSH:D009203" and "MESH:D009203" are seen to be one code.

Codes are kept as they are everywhere else; what is made here is a key that serves for comparing only. Of a code such as
``MESH:D009203`` the part before the first colon is its prefix. In the key

* the prefix is in capital letters and, of several spellings of a vocabulary, the one in `PREFIX_SPELLINGS`;
* the date of a release is no part of a prefix (``SNOMEDCT_US_2023_03_01:22298006``);
* a prefix that is repeated counts once (``HGNC:HGNC:5``, ``HPO:HP:0001250``);
* OMIM's phenotypic series, which some count among its entries, are a vocabulary of their own (``OMIM:PS105400`` is
  ``OMIMPS:105400``);
* an IRI is the code it stands for (``http://purl.obolibrary.org/obo/MONDO_0005068``; `onoma.terminology.iris`),
  and so is an id of letters, underscore and digits (``EFO_0000612``);
* the rest of the code stands as it is: case matters in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from onoma.terminology.iris import code_maker

PREFIX_SPELLINGS = {
    "ATC": (),
    "CHEBI": (),
    "DOID": ("DO",),
    "DRUGBANK": (),
    "EFO": (),
    "GARD": (),
    "HGNC": (),
    "HP": ("HPO",),
    "ICD10": ("ICD-10", "ICD10WHO"),
    "ICD10CM": ("ICD-10-CM", "ICD10-CM"),
    "ICD9CM": ("ICD-9-CM", "ICD9-CM"),
    "LOINC": ("LNC",),
    "MEDDRA": ("MDR",),
    "MESH": ("MSH",),
    "NCBITAXON": ("NCBITAXONOMY", "NCBI_TAXONOMY", "NCBITAXONID", "TAXID", "TAXONOMY"),
    "NCIT": ("NCI", "NCI_THESAURUS"),
    "OMIM": ("MIM",),
    "OMIMPS": ("MIMPS", "OMIM.PS"),
    "ORPHANET": ("ORPHA", "ORDO"),
    "RXNORM": ("RXCUI",),
    "SNOMEDCT": ("SNOMEDCT_US", "SNOMED_CT", "SNOMED-CT", "SNOMED", "SCTID", "SCT"),
    "UMLS": ("UMLS_CUI",),
    "UNIPROT": ("UNIPROTKB", "SWISSPROT"),
}
"""Vocabulary to other spellings of its prefix, in capital letters; a prefix that is not here has one spelling."""

FORMAT_VOCABULARIES = {
    "icd10cm": "ICD10CM",
    "mesh": "MESH",
    "orphanet": "ORPHANET",
    "rxnorm": "RXNORM",
    "snomed": "SNOMEDCT",
    "taxonomy": "NCBITAXON",
    "umls": "UMLS",
    "uniprot": "UNIPROT",
}
"""Formats (`onoma.terminology.formats`) whose codes can be without a prefix, and the vocabulary they are of."""

_SPELLED = {
    spelling: vocabulary for vocabulary, spellings in PREFIX_SPELLINGS.items() for spelling in (vocabulary, *spellings)
}
_PREFIX = r"^([A-Za-z][A-Za-z0-9_.\-]*):."
_UNDERSCORED = r"^([A-Za-z]+)_([A-Za-z]{0,2}[0-9]+)$"
_RELEASE_DATE = r"_\d{4}_\d{2}_\d{2}$"


def code_keys(codes: pl.Series, vocabulary: str | None = None) -> pl.Series:
    """What codes are compared by; see the module.

    Args:
        codes: Any strings.
        vocabulary: Of which vocabulary the codes are that have no prefix, e.g. "MESH".

    Example:
        >>> code_keys(pl.Series(["msh:D009203", "http://www.orpha.net/ORDO/Orphanet_58", "Orpha:58", "D1"])).to_list()
        ['MESH:D009203', 'ORPHANET:58', 'ORPHANET:58', 'D1']
        >>> code_keys(pl.Series(["D009203", "MESH:D009203"]), "msh").to_list()
        ['MESH:D009203', 'MESH:D009203']
    """
    written = pl.Series("code", _without_iris(codes)).to_frame()
    split = written.select(
        "code",
        prefix=pl.coalesce(pl.col("code").str.extract(_PREFIX), pl.col("code").str.extract(_UNDERSCORED)),
    ).with_columns(
        # The prefix is ASCII, and a byte of it a character.
        rest=pl.col("code").str.slice(pl.col("prefix").str.len_bytes() + 1),
    )
    if vocabulary is not None:
        split = split.with_columns(
            rest=pl.col("rest").fill_null(pl.col("code")), prefix=pl.col("prefix").fill_null(pl.lit(vocabulary))
        )
    split = split.with_columns(_vocabulary(split["prefix"]))
    again = split["rest"].str.extract(_PREFIX)
    split = split.with_columns(again=_vocabulary(again), n_again=again.str.len_bytes() + 1)
    rest = (
        pl.when(pl.col("again") == pl.col("prefix"))
        .then(pl.col("rest").str.slice(pl.col("n_again").fill_null(0)))
        .otherwise("rest")
    )
    is_series = pl.col("prefix").is_in(["OMIM", "OMIMPS"]) & rest.str.contains(r"^PS[0-9]+$")
    key = (
        pl.when(pl.col("prefix").is_null())
        .then("code")
        .when(is_series)
        .then(pl.lit("OMIMPS:") + rest.str.slice(2))
        .otherwise(pl.col("prefix") + ":" + rest)
    )
    return split.select(key=key).to_series()


def vocabulary_of(config: Mapping[str, Any]) -> str | None:
    """Of which vocabulary a terminology's codes without a prefix are, by its manifest; ``None``: that is not known.

    Example:
        >>> vocabulary_of({"format": "umls", "options": {"codes": ["SNOMEDCT_US"]}}), vocabulary_of({"format": "obo"})
        ('SNOMEDCT_US', None)
    """
    if "enriched" in config:
        vocabulary = config.get("vocabulary")
        return None if vocabulary is None else str(vocabulary)
    sources = config.get("options", {}).get("codes") if config.get("format") == "umls" else None
    if sources:  # codes of several sources may be of any
        return str(sources[0]) if len(sources) == 1 else None
    return FORMAT_VOCABULARIES.get(str(config.get("format")))


def _vocabulary(prefixes: pl.Series) -> pl.Series:
    """One spelling of each prefix."""
    distinct = prefixes.unique().drop_nulls()
    spelled = distinct.str.to_uppercase().str.replace(_RELEASE_DATE, "")
    return prefixes.replace_strict(distinct, spelled.replace(_SPELLED), default=None, return_dtype=pl.String)


def _without_iris(codes: pl.Series) -> pl.Series:
    is_iri = codes.str.contains("^https?://")
    if not is_iri.any():
        return codes
    iris = codes.filter(is_iri).unique()
    contracted = pl.Series(map(code_maker(), iris), dtype=pl.String)
    return codes.replace(iris, contracted)

"""Small things that several rooms' tests are made with: a tokeniser, a random encoder, a terminology."""

from __future__ import annotations

import gzip
import io
import string
import tarfile
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from onoma.pairs import PairSet, build_pairs
from onoma.terminology import Terminology, TerminologyTables, write_terminology
from onoma.terminology.tables import CONCEPTS, NAMES, RELATIONS

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "heart", "attack", "##s"]
VOCABULARY += [*string.ascii_lowercase, *string.digits, *(f"##{c}" for c in string.ascii_lowercase + string.digits)]


WORDS = ["heart", "lung", "liver", "bone", "skin", "eye", "ear", "brain"]
"""Each is a concept in the terminologies of the training tests."""


def small_tokenizer(extra_tokens: Sequence[str] = ()) -> Tokenizer:
    """WordPiece over a few words, letters and digits, with [CLS] and [SEP]."""
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys([*VOCABULARY, *extra_tokens]))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    return tokenizer


def tiny_encoder(
    folder: Path,
    *,
    extra_tokens: Sequence[str] = (),
    seed: int = 0,
    weight_std: float = 0.02,
    type_vocab_size: int = 2,
    intermediate_size: int = 32,
) -> Path:
    """A random BERT of two layers and width 16 as a plain Hugging Face folder.

    With weights of the usual size all its vectors are nearly the same, and gradients as small as rounding errors.
    """
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    tokenizer = small_tokenizer(extra_tokens)
    torch.manual_seed(seed)
    model = BertModel(
        BertConfig(
            vocab_size=tokenizer.get_vocab_size(),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=intermediate_size,
            max_position_embeddings=32,
            initializer_range=weight_std,
            type_vocab_size=type_vocab_size,
        )
    )
    model.save_pretrained(folder)
    PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Name:
    """A row of the table of names."""

    text: str
    language: str = "en"
    is_suppressed: bool = False
    source: str = "test"


def make_terminology(
    folder: Path,
    concepts: Mapping[str, Sequence[str | Name]],
    *,
    obsolete: Collection[str] = (),
    semantic_types: Mapping[str, Sequence[str]] | None = None,
    relations: Sequence[tuple[str, str, str]] = (),
) -> Terminology:
    """A terminology of these concepts, each with its names, the preferred one first; relations by concept."""
    rows = [
        {
            "concept_row": row,
            "text": name.text,
            "language": name.language,
            "source": name.source,
            "term_type": "",
            "is_preferred": position == 0,
            "is_suppressed": name.is_suppressed,
        }
        for row, names in enumerate(concepts.values())
        for position, name in enumerate(Name(name) if isinstance(name, str) else name for name in names)
    ]
    tables = TerminologyTables(
        concepts=pl.DataFrame(
            {
                "concept_id": list(concepts),
                "preferred_name": [getattr(names[0], "text", names[0]) for names in concepts.values()],
                "semantic_types": [list((semantic_types or {}).get(concept, ())) for concept in concepts],
                "status": ["obsolete" if concept in obsolete else "active" for concept in concepts],
                "replaced_by": [None for _ in concepts],
            },
            schema=CONCEPTS,
        ),
        names=pl.DataFrame(rows, schema=NAMES),
        relations=pl.DataFrame(
            [(list(concepts).index(head), what, list(concepts).index(tail), "") for head, what, tail in relations],
            schema=RELATIONS,
            orient="row",
        ),
    )
    write_terminology(folder, tables)
    return Terminology.open(folder)


def disease_pairs(base: Path, folder: Path) -> PairSet:
    """Pairs of three names for each of `WORDS`, tokenised for an encoder of `tiny_encoder`."""
    names = {f"X:{word}": [f"{word} disease", f"disease of {word}", f"{word} illness"] for word in WORDS}
    terminology = make_terminology(folder / "t", names)
    return build_pairs(terminology, base / "tokenizer.json", folder / "p", max_tokens=16, ambiguous="mark")


def tarred(members: Mapping[str, bytes | str], *, is_gzip: bool = True) -> bytes:
    """A tar archive, the same every time."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members.items():
            content = data.encode() if isinstance(data, str) else data
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(made.getvalue(), mtime=0) if is_gzip else made.getvalue()


def zipped(members: Mapping[str, bytes | str]) -> bytes:
    """A zip archive, the same every time."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, (2024, 5, 6, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return archive.getvalue()

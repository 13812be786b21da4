"""Threads that share an open linker get the answers of one that has it alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from linking_data import write_letter_encoder

from onoma.encoders import open_encoder
from onoma.indexes import IndexKind
from onoma.linking import Link, Preparation, build_linker
from tiny import make_terminology


@pytest.mark.parametrize("kind", get_args(IndexKind))
def test_threads_share_a_linker(kind: IndexKind, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("abcdefgh"), 5)) for _ in range(60)]
    names = {f"D{row}": [" ".join(random.choice(words, 3)) for _ in range(3)] for row in range(200)}
    make_terminology(tmp_path / "t", names)
    write_letter_encoder(tmp_path / "letters")
    encoder = open_encoder(tmp_path / "letters", backend="onnx")
    linker = build_linker(tmp_path / "t", encoder, tmp_path / "linker", index=kind, sparse=True)
    linker = linker.preparing(Preparation(spelling=True, composites=True))
    mentions = [" ".join(random.choice(words, 2)) for _ in range(40)] + [
        f"{one[0]}; {one[1]}" for one in list(names.values())[:40]
    ]
    alone = [linker.link([mention], top_k=3) for mention in mentions]

    def ask(mention: str) -> list[list[Link]]:
        return linker.link([mention], top_k=3)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, mentions)) == alone
        assert list(pool.map(ask, mentions[::-1])) == alone[::-1]

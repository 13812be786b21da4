"""The model card ``README.md`` of an encoder's folder, made of what the folder says and of nothing else.

Its head is YAML as the Hugging Face hub reads it. The same folder gives the same card, and no path of the machine that
made it gets in: of a base that lay in a folder only the name is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onoma.artifacts import CARD_NAME, Parent, licence_in_words, origins_of, restrictions_in_words
from onoma.encoders.agreement import Agreement, read_agreements
from onoma.encoders.folders import (
    ONNX_NAME,
    EncoderFolder,
    Origin,
    family_of,
    is_adapted,
    read_about,
)
from onoma.encoders.json_files import read_json
from onoma.encoders.markdown import code, plain, table
from onoma.encoders.pooling import Pooling
from onoma.encoders.weight_files import count_parameters, weight_files
from onoma.files.sizes import size_in_words

TRAIN_NAME = "train.json"
RESULTS_FOLDER = "results"
RESULTS_KIND, RESULTS_FORMAT, RESULTS_NAME = "benchmark-results", 2, "results.json"
"""Of the folders that `onoma.benchmarks` writes; a card tells what is in them."""

_POOLING_IN_WORDS: dict[Pooling, str] = {
    "cls": "the first token's vector ([CLS])",
    "mean": "the mean over a name's tokens, special tokens included",
    "mean-nospec": "the mean over a name's tokens, special tokens left out",
    "mean-all": "the mean over all positions up to the longest name, padding included",
}
_POOLING_IN_CODE: dict[Pooling, str] = {
    "cls": "vectors = states[:, 0]",
    "mean": 'real = tokens["attention_mask"].unsqueeze(-1)\nvectors = (states * real).sum(1) / real.sum(1)',
}
_PREPARING = {
    "sapbert": '" ".join(name.lower().split())',
    "exact": "name.strip()",
}
"""Presets of `onoma.terminology.normalise` that are one expression."""

_DATA = {"vocabularies": "names of", "corpora": "annotated mentions of"}
_COUNTED = ("pairs", "queries", "mentions", "candidates", "names", "concepts")
_PAIRS = {
    "languages": "languages",
    "max_pairs_per_concept": "pairs per concept, at most",
    "ambiguous": "equal names of different concepts",
    "include_suppressed": "suppressed names too",
}


def data_of(configs: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The vocabularies and corpora that encoders have learned, or their bases before them, each once.

    Args:
        configs: Of their manifests.
    """
    told = [part for config in configs for part in (config.get("before", {}), config)]
    found = {key: list(dict.fromkeys(str(one) for part in told for one in part.get(key, ()))) for key in _DATA}
    return {key: names for key, names in found.items() if names}


def data_in_rows(data: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Rows of a table for a person, of what `data_of` gives."""
    return [(f"learned {label}", ", ".join(data[key])) for key, label in _DATA.items() if key in data]


def write_card(
    folder: Path, source: EncoderFolder, *, config: Mapping[str, Any], parents: Sequence[Parent], seed: int | None
) -> None:
    """Write the card of a folder whose other files are there; see `model_card`."""
    text = model_card(folder, source, config=config, parents=parents, seed=seed)
    (folder / CARD_NAME).write_text(text, encoding="utf-8")


def model_card(
    folder: Path, source: EncoderFolder, *, config: Mapping[str, Any], parents: Sequence[Parent], seed: int | None
) -> str:
    """The card of an encoder.

    Args:
        folder: Where its files lie; it may have no manifest yet.
        source: How its vectors are made.
        config: Of its manifest.
        parents: Of its manifest.
        seed: Of its manifest.
    """
    about = read_about(folder)
    architecture = read_json(folder / "config.json")
    origin = Origin(**about["origin"])
    training: Mapping[str, Any] = config.get("training", {})
    report: dict[str, Any] = read_json(folder / TRAIN_NAME, missing_is_empty=True)
    preset: str | None = about.get("normalisation")
    sections = [
        _head(folder, source, origin, config, architecture),
        f"# {plain(about['name'])}",
        _what_it_is(folder, source, about, config, architecture, origin, preset),
        _use(folder, source, about["name"], preset, architecture),
        data_section(config, report, parents) if training or config.get("pairs") or data_of([config]) else "",
        training_section(config, report, seed),
        scores_section(report, [read_json(file) for file in sorted((folder / RESULTS_FOLDER).glob("*.json"))]),
        _precisions(folder, read_agreements(folder).values()),
        _limits(source, preset),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(
    folder: Path, source: EncoderFolder, origin: Origin, config: Mapping[str, Any], architecture: Mapping[str, Any]
) -> str:
    """YAML; every string is written as JSON, which is YAML too, so that no name can break it."""
    tags = ["onoma", "feature-extraction", *(["biomedical", "entity-linking"] if "training" in config else [])]
    lines = []
    if count_parameters(folder) and source.pooling in _POOLING_IN_CODE and not is_adapted(architecture):
        tags.append("sentence-transformers")
        lines.append("library_name: sentence-transformers")
    lines += ["pipeline_tag: sentence-similarity", "tags:", *(f"- {tag}" for tag in tags)]
    if languages := _languages(config.get("pairs", {})):
        lines += ["language:", *(f"- {json.dumps(language)}" for language in languages)]
    if base := origin.hub_id or origin.base_hub_id or origin.ancestor_hub_id:
        lines.append(f"base_model: {json.dumps(base)}")
    if origin.licence is not None:
        # The hub writes SPDX's names in lower case, and those of the GNU licences without what may follow.
        known = re.fullmatch(r"(?!LicenseRef)([A-Za-z0-9.-]+?)(?:-only|-or-later)?", origin.licence, re.IGNORECASE)
        lines.append(f"license: {known[1].lower() if known else 'other'}")
        if not known:
            lines.append(f"license_name: {json.dumps(origin.licence)}")
    return "\n".join(["---", *lines, "---"])


def _languages(pairs: Mapping[str, Any]) -> list[str]:
    """Of the names, if they are said of all pairs."""
    parts: Sequence[Mapping[str, Any]] = pairs.get("merged") or [pairs]
    said = [part.get("languages") for part in parts]
    return list(dict.fromkeys(language for one in said for language in one or ())) if all(said) else []


def _what_it_is(
    folder: Path,
    source: EncoderFolder,
    about: Mapping[str, Any],
    config: Mapping[str, Any],
    architecture: Mapping[str, Any],
    origin: Origin,
    preset: str | None,
) -> str:
    rows = []
    if averaged := config.get("averaged"):
        named = [f"{one['name']} ({'centred, ' if one.get('centred') else ''}{one['share']:.3g})" for one in averaged]
        rows.append(("average of", ", ".join(named)))
    if centred := config.get("centred"):
        rows.append(("centred", f"the mean of {centred['names']:,} names' vectors is taken off"))
    if origin.base:
        is_trained = preset is not None or bool(config.get("training") or averaged)
        base = known_as(origin.base, origin.base_hub_id, origin.base_licence)
        rows.append(("trained from" if is_trained else "made from", base))
    if origin.ancestor_hub_id:
        rows.append(("which goes back to", known_as(origin.ancestor_hub_id, None, origin.ancestor_licence)))
    if origin.hub_id:
        rows.append(("weights", f"those of {known_as(origin.hub_id, None, origin.licence)}, unchanged"))
    layers = architecture.get("num_hidden_layers") or architecture.get("n_layers")
    family = family_of(architecture) + (", with adapters" if is_adapted(architecture) else "")
    rows.append(("architecture", f"{family}, {layers} layers" if layers else family))
    if n_parameters := count_parameters(folder):
        rows.append(("parameters", f"{n_parameters:,}"))
    kept = f"the first {source.dimensions} of " if source.dimensions else ""
    rows += [
        ("vector", f"{kept}{source.width} numbers; compare by cosine"),
        ("pooling", f"{source.pooling}: {_POOLING_IN_WORDS[source.pooling]}"),
        ("longest name", f"{source.max_tokens} tokens, special tokens included; what lies beyond is cut"),
    ]
    if preset:
        rows.append(("names are prepared by", f"the preset `{preset}`, as its training names were"))
    if source.sparse_weight is not None:
        added = f"add {source.sparse_weight:.4g} x cosine of character 1-2-gram TF-IDF to the cosine"
        rows.append(("sparse weight", added))
    if origin.licence:
        rows.append(("licence", origin.licence))
    rows.append(("SHA-256 of the weights", f"`{about['weights_sha256']}`"))
    first = "An encoder of names: it turns a name into a vector, so that names can be compared."
    return f"{first}\n\n{table(('', ''), rows)}"


def _use(folder: Path, source: EncoderFolder, name: str, preset: str | None, architecture: Mapping[str, Any]) -> str:
    place = json.dumps(f"path/to/{name}")
    asked = "" if _has_fp32(folder) else f', precision="{source.precision}"'
    names = '["heart attack", "Myocardial infarction"]'
    prepare = f'names = [onoma.normalise(name, "{preset}") for name in {names}]' if preset else f"names = {names}"
    parts = [
        "## How to use it",
        "With Onoma, torch or not:",
        code(["import onoma", "", prepare, f"vectors = onoma.open_encoder({place}{asked}).encode(names)"]),
    ]
    if not count_parameters(folder):  # of a source that was made by joining, there are no files
        return "\n\n".join([*parts, "The folder holds the ONNX model only, so other libraries cannot open it."])
    if is_adapted(architecture) or source.pooling not in _POOLING_IN_CODE:
        said = (
            "sentence-transformers and transformers do not open it as it is: it has adapters inside."
            if is_adapted(architecture)
            else "sentence-transformers does not open it: it does not know its pooling. transformers gives the vectors "
            f"of its tokens; a name's is {_POOLING_IN_WORDS[source.pooling]}."
        )
        return "\n\n".join([*parts, said])
    if preset in _PREPARING:
        prepare = f"names = [{_PREPARING[preset]} for name in {names}]"
    elif preset:
        prepare = f"names = {names}  # prepared as by onoma.normalise(name, {preset!r})"
    lower = ["names = [name.lower() for name in names]"] if source.lower_case else []
    return "\n\n".join(
        [
            *parts,
            "With sentence-transformers, the same vectors:",
            code(
                [
                    "from sentence_transformers import SentenceTransformer",
                    "",
                    prepare,
                    f"vectors = SentenceTransformer({place}).encode(names)",
                ]
            ),
            "With transformers:",
            code(
                [
                    "import torch",
                    "from transformers import AutoModel, AutoTokenizer",
                    "",
                    prepare,
                    *lower,
                    f"tokenizer = AutoTokenizer.from_pretrained({place})",
                    f"model = AutoModel.from_pretrained({place})",
                    "tokens = tokenizer(names, padding=True, truncation=True, "
                    f'max_length={source.max_tokens}, return_tensors="pt")',
                    "with torch.no_grad():",
                    "    states = model(**tokens).last_hidden_state",
                    *_POOLING_IN_CODE[source.pooling].splitlines(),
                    "vectors = torch.nn.functional.normalize(vectors)",
                ]
            ),
        ]
    )


def data_section(config: Mapping[str, Any], report: Mapping[str, Any], parents: Sequence[Parent]) -> str:
    """What it was trained on, by its manifest and, of numbers, by the report of its training."""
    told = report.get("data", {})
    rows = [("trained before", str(config["earlier"]))] if config.get("earlier") else []
    rows += [("learned from", f"the vectors of {config['teacher']}")] if config.get("teacher") else []
    rows += [(what, f"{told[what]:,}") for what in _COUNTED if what in told]
    before = "its base or teacher: " if config.get("teacher") else "its base: "
    for part, whose in ((config.get("before", {}), before), (config, "")):
        rows += [(f"{whose}{label}", ", ".join(map(str, part[key]))) for key, label in _DATA.items() if part.get(key)]
    pairs: Mapping[str, Any] = config.get("pairs", {})
    rows += [(label, _shown(pairs[key])) for key, label in _PAIRS.items() if pairs.get(key) is not None]
    if mentions := sum(part["mentions"]["in_all"] for part in (pairs, *pairs.get("merged", ())) if "mentions" in part):
        rows.append(("annotated mentions read", f"{mentions:,}"))
    if pairs.get("hidden_names"):
        rows.append(("left out", "names set aside to measure it"))
    merged: Sequence[Mapping[str, Any]] = pairs.get("merged", ())
    if merged:
        rows.append(("merged from", f"{len(merged)} {'set' if len(merged) == 1 else 'sets'} of pairs"))
    for number, part in enumerate(merged, start=1):
        said = [(label, part[key]) for key, label in _PAIRS.items() if part.get(key) is not None]
        rows += [(f"set {number}: {label}", _shown(value)) for label, value in said]
    if learned := config.get("trained_mentions"):
        rows.append(("sets of annotated mentions that it, its base or its teacher learned", str(len(learned))))
    rows += [(f"fingerprint of the {parent.kind}", f"`{parent.fingerprint}`") for parent in parents]
    rows += [("fingerprint of the terminology", f"`{one}`") for one in config.get("terminology", ())]
    return "\n\n".join(["## What it was trained on", table(("", ""), rows), *_origins(config)])


def _origins(config: Mapping[str, Any]) -> list[str]:
    """From which files and vocabularies the training names came, itself and by its base, and under which licences."""
    origins = origins_of(config)
    parts = []
    for one in origins:
        rows = [("read as", str(one["format"]))]
        rows += [("release", one["release"])] if one.get("release") else []
        rows.append(("licence", licence_in_words(one)))
        rows += [(f"SHA-256 of {file}", f"`{checksum}`") for file, checksum in one.get("source_files", {}).items()]
        parts += [f"### Names of {plain(one['source'])}", table(("", ""), rows)]
        if vocabularies := one.get("source_vocabularies"):
            columns = ("source", "version", "restriction_level", "name", "citation")
            told = [tuple(vocabulary.get(column, "") for column in columns) for vocabulary in vocabularies]
            parts.append(
                table(("source vocabulary", "version", "level of restriction", "name", "to be cited as"), told)
            )
    if restricted := restrictions_in_words(origins):
        parts.append(f"**Restricted:** {plain(restricted)}.")
    if origins:
        parts.append(
            "These names, and mentions if any were learned, are not in this folder as text. Whether weights that were "
            "trained on them may be passed on is for their licences to say."
        )
    return parts


def training_section(config: Mapping[str, Any], report: Mapping[str, Any], seed: int | None) -> str:
    """How it was trained, by its manifest and the report of its training; empty if it was not."""
    training: Mapping[str, Any] = config.get("training", {})
    if not training:
        return ""
    rows = []
    if recipe := config.get("recipe"):
        rows.append(("recipe", _recipe_in_words(recipe)))
    if "steps" in report:
        planned = report.get("planned_steps", report["steps"])
        rows.append(("steps", f"{report['steps']:,}" + (f" of {planned:,}" if planned != report["steps"] else "")))
    if report.get("stopped_early"):
        rows.append(("stopped early", str(report["stopped_early"])))
    if report.get("saved_step", report.get("steps")) != report.get("steps"):
        rows.append(("weights of step", f"{report['saved_step']:,}"))
    if "first_loss" in report and "last_loss" in report:
        of = "ten steps" if report.get("steps", 0) >= 20 else "half of the steps"
        rows.append((f"loss, first and last {of}", f"{report['first_loss']:.4f}, {report['last_loss']:.4f}"))
    if "names_per_second" in report:
        rows.append(("names per second", f"{report['names_per_second']:,.0f}"))
    if "seconds" in report:
        rows.append(("seconds", f"{report['seconds']:,.0f}"))
    if "base_fingerprint" in config:
        rows.append(("fingerprint of the base", f"`{config['base_fingerprint']}`"))
    rows += [(_words(key), _shown(value)) for key, value in config.get("ran_on", {}).items()]
    rows += [(f"version of {key}", str(value)) for key, value in report.get("versions", {}).items()]
    if seed is not None:
        rows.append(("seed", str(seed)))
    # What the pairs were made with stands with the pairs; what a recipe says of it does not hold for those made before.
    elsewhere = {"base", "seed", *(_PAIRS if "pairs" in config else ()), *config.get("pairs", {})}
    settings = [(key, _shown(value)) for key, value in _flat(training) if key not in elsewhere and value is not None]
    of_whom = " that all averaged encoders have" if config.get("averaged") else ""
    parts = ["## How it was trained", *([table(("", ""), rows)] if rows else [])]
    return "\n\n".join([*parts, f"### Settings{of_whom}", table(("setting", "value"), settings)])


def _recipe_in_words(recipe: Mapping[str, Any]) -> str:
    others = ", ".join(recipe["overridden"])
    return f"{recipe['name']}, with other settings of {others}" if others else str(recipe["name"])


def scores_section(report: Mapping[str, Any], results: Sequence[Mapping[str, Any]] = ()) -> str:
    """Scores on development data, by the report of its training, and on benchmarks."""
    parts = []
    if evaluations := report.get("evaluations"):
        by_step = {line["step"]: line for line in evaluations}
        saved = report.get("saved_step")
        shown = [
            step for step in sorted(by_step) if step in {0, saved, max(by_step), (report.get("best") or {}).get("step")}
        ]
        rows = [
            (f"{step:,}", name, *(_per_cent(scores[key]) for key in ("at_1", "at_5")))
            for step in shown
            for name, scores in by_step[step]["sets"].items()
        ]
        if rows:
            parts += [
                "On development data, which may have decided when to stop and what to keep (per cent):",
                table(("step", "set", "acc@1", "acc@5"), rows),
            ]
    if results:
        rows = [
            (
                result["task"] + (f", {result['split']}" if "split" in result else ""),
                result.get("precision", "fp32"),
                str(result.get("protocol", "")).partition(":")[0]
                + (", n-grams added" if "sparse_weight" in result["model"] else ""),
                f"{result['n_queries']:,}",
                f"{result['n_dictionary']:,}",
                *(_with_interval(result, key) for key in ("acc@1", "acc@5")),
            )
            for result in results
        ]
        parts += [
            "On benchmarks (per cent, in brackets the 95 % confidence interval):",
            table(("task", "precision", "protocol", "queries", "names", "acc@1", "acc@5"), rows),
        ]
        doubts = dict.fromkeys(
            f"* {plain(result['task'])}: {plain(str(one))}" for result in results for one in result.get("doubts", ())
        )
        parts += ["\n".join(["What is to be known of these figures:", "", *doubts])] if doubts else []
    return "\n\n".join(["## Scores", *(parts or ["No score was recorded in this folder."])])


def _precisions(folder: Path, agreements: Iterable[Agreement]) -> str:
    rows = [
        (
            one.precision,
            size_in_words(one.bytes),
            f"{one.speed:.2f}",
            f"{one.mean_cosine:.5f}",
            f"{one.percentile_1_cosine:.5f}",
            f"{one.same_neighbour:.3f}",
            f"{one.n_names:,}",
        )
        for one in agreements
    ]
    if not rows:
        return ""
    columns = ("precision", "size", "speed", "cosine, mean", "cosine, 1st percentile", "same neighbour", "names")
    which = (
        "ONNX models beside the one in fp32, each compared with it"
        if _has_fp32(folder)
        else "What the folder has in place of fp32, compared with the fp32 that it was made from"
    )
    return "\n\n".join(
        [
            "## Lower precisions",
            f"{which}: size, names per second as a multiple of fp32 "
            "on the machine that measured, cosine of a name's two vectors, share of names whose nearest other name "
            "stays the same, number of names measured.",
            table(columns, rows),
        ]
    )


def _limits(source: EncoderFolder, preset: str | None) -> str:
    lines = [
        f"* Names longer than {source.max_tokens} tokens are cut, and differ in nothing that comes later.",
        "* A cosine is no probability, and some name is always the nearest, right or wrong.",
        "* Names out of context: one text has one vector, whatever it means where it stands.",
        "* What is not among the scores above was not measured.",
    ]
    if preset:
        lines.append(f"* Names that are not prepared by `{preset}` get other vectors than those it was trained on.")
    return "\n".join(["## Limits", "", *lines])


def _has_fp32(folder: Path) -> bool:
    return bool(weight_files(folder)) or (folder / ONNX_NAME).is_file()


def known_as(name: str, hub_id: str | None, licence: str | None) -> str:
    """An encoder in words."""
    origin = f" ({hub_id})" if hub_id and hub_id != name else ""
    return f"{name}{origin}" + (f", licence {licence}" if licence else "")


def _with_interval(result: Mapping[str, Any], key: str) -> str:
    if key not in result:
        return ""
    low, high = result.get("confidence_interval_95", {}).get(key, (None, None))
    return _per_cent(result[key]) + (f" [{100 * low:.1f}, {100 * high:.1f}]" if low is not None else "")


def _per_cent(value: float) -> str:
    return f"{100 * value:.1f}"


def _flat(settings: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value)) or "none"
    return str(value)


def _words(key: str) -> str:
    return key.replace("_", " ")

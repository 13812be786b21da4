"""``onoma linker info``: what a linker says about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onoma.cli.asking import tuned_wish
from onoma.cli.options import Json, LinkerFolder
from onoma.quantities import quantity

if TYPE_CHECKING:
    from onoma.artifacts import Manifest
    from onoma.indexes.records import IndexRecord
    from onoma.linking.settings import LinkerSettings


def info(
    linker: LinkerFolder,
    as_json: Json = False,
) -> None:
    """Show what a linker was made from and how it searches.

    Also shows where its vectors are. Opens neither vectors nor models nor a database.
    """
    from onoma.artifacts import origins_in_rows
    from onoma.cli import show
    from onoma.indexes.records import read_index_record
    from onoma.linking.folder import checked_folder, fingerprint_of_folder, open_manifest
    from onoma.linking.settings import LinkerSettings

    manifest = open_manifest(checked_folder(linker))
    record = read_index_record(linker) if "index" in manifest.config else None
    facts = {
        **_facts(manifest, LinkerSettings.open(linker), record),
        "fingerprint": fingerprint_of_folder(linker, manifest),
    }
    if as_json:
        show.json_document({name: value for name, value in facts.items() if value is not None})
        return
    rows = [
        row
        for name, value in facts.items()
        if value is not None
        for row in (origins_in_rows(value) if name == "read_from" else [(show.in_words(name), _shown(name, value))])
    ]
    show.table(["", "linker"], rows)


def _facts(manifest: Manifest, settings: LinkerSettings, record: IndexRecord | None) -> dict[str, Any]:
    """What there is to say; ``None`` where there is not."""
    from onoma.artifacts import origins_of
    from onoma.linking.folder import is_of_earlier_release

    config = manifest.config
    index, encoded_in = config.get("index", {}), config.get("names_encoded_in")
    parents = {parent.kind: parent.fingerprint for parent in manifest.parents}
    return {
        "n_concepts": config["n_concepts"],
        "n_concepts_without_name": config["n_nameless"],
        "n_texts": config["n_texts"],
        "n_texts_not_read": config.get("n_unread"),
        "normalisation": config["normalisation"],
        "stages": list(settings.stages),
        "terminology_fingerprint": parents["terminology"],
        "read_from": origins_of(config) or None,
        "encoder": config.get("encoder_name"),
        "encoder_fingerprint": config.get("encoder_fingerprint"),
        "encoder_precision": config.get("precision"),
        "names_encoded_in": None if encoded_in in (None, [config.get("precision")]) else encoded_in,
        "index": index.get("kind"),
        "vectors": index.get("vectors"),
        "dimensions": None if record is None else record.width,
        "n_candidates_scored_exactly": None if record is None else record.n_scored,
        "recall": index.get("recall"),
        "table": index.get("table"),
        "vectors_fingerprint": index.get("fingerprint"),
        "ngrams": config["ngrams"],
        "reranker": config.get("reranker"),
        "n_mentions_tuned_on": config.get("tuning", {}).get("n_mentions"),
        "n_names_calibrated_on": None if settings.calibration is None else config.get("tuning", {}).get("n_names"),
        "tuned_with_an_earlier_release": is_of_earlier_release(settings, config) or None,
        "n_mentions_of_prior": config.get("prior", {}).get("n_mentions"),
        "prior_weight": settings.prior_weight,
        "rerank_weight": settings.rerank_weight,
        "confidence_with_stages": list(settings.calibrated_stages) or None,
        "no_concept_below": settings.no_concept_below,
        **(
            {}
            if settings.no_concept_below is None
            else {f"no_concept_for_{name}": wished for name, wished in tuned_wish(config).items()}
        ),
        "confidence_in_force": None if settings.calibration is None else settings.calibrated_stages == settings.stages,
        "created": manifest.created,
        "onoma": manifest.onoma_version,
    }


def _shown(name: str, value: Any) -> str:
    if name == "no_concept_below":
        from onoma.linking.confidence_metrics import threshold_in_words

        return threshold_in_words(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        if not value["n_queries"]:
            return "not measured: no name has another to find"
        return f"{value['at_1']} at 1, {value['at_10']} at 10 ({quantity(value['n_queries'], 'query', 'queries')})"
    if isinstance(value, list):
        return ("-" if isinstance(value[0], int) else ", ").join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no: other stages are on; run onoma linker tune or calibrate"
    return f"{value:,}" if isinstance(value, int) else str(value)

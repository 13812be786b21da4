"""What the stages of linking are asked: each part of a mention, with its context and other ways to write it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from onoma.encoders.cross_encoder_tokens import END_MARK, START_MARK, split_context
from onoma.linking.components import Components
from onoma.linking.mentions import PreparedMention
from onoma.linking.reranking import Reranker
from onoma.linking.settings import Stage
from onoma.linking.variants import Variant, variants_of
from onoma.terminology import normalise


@dataclass(frozen=True)
class Question:
    """One mention, or one part of it.

    Attributes:
        text: Normalised.
        mention: Before that; a cross-encoder prepares it in its own way.
        context: Where it stands, if that is known and read.
        variants: Other ways to write it, normalised unless a cross-encoder reads them.
        code: Of the concept that is meant, where the mention is its code; the text is then its preferred name.
    """

    text: str
    mention: str = ""
    context: str | None = None
    variants: tuple[Variant, ...] = ()
    code: str | None = None

    def written(self, text: str, variant: Variant) -> Question:
        """The same mention in another way to write it; a mention that is marked in its context stays as it is there."""
        is_as_it_was = self.context is not None or not self.mention
        return Question(text, self.mention if is_as_it_was else variant.text, self.context)


def questions_of(
    prepared: PreparedMention, *, normalisation: str, reranker: Reranker | None, with_variants: bool
) -> list[Question]:
    """What the stages are asked for a mention: each of its parts.

    Args:
        prepared: The mention.
        normalisation: Of the linker.
        reranker: Its cross-encoder, if that is on. A part that is not the mention as it stands in its context is marked
            there.
        with_variants: Whether in other ways to write it too.
    """
    texts = [normalise(part, normalisation) for part in prepared.parts]
    variants = [tuple(variants_of(part)) if with_variants else () for part in prepared.parts]
    if reranker is None:
        return [
            Question(
                text,
                variants=tuple(replace(way, text=normalise(way.text, normalisation)) for way in ways),
                code=prepared.code,
            )
            for text, ways in zip(texts, variants, strict=True)
        ]
    context = prepared.context if reranker.uses_contexts else None
    if context and prepared.is_changed:
        before, after = split_context(prepared.original, context)
        context = f"{before}{START_MARK}{prepared.original}{END_MARK}{after}"
    return [
        Question(text, part, context, ways, prepared.code)
        for text, part, ways in zip(texts, prepared.parts, variants, strict=True)
    ]


def questions_of_all(
    components: Components,
    mentions: Iterable[str | PreparedMention],
    contexts: Iterable[str | None] | None,
    stages: Iterable[str] | None,
) -> tuple[list[PreparedMention], tuple[Stage, ...], list[list[Question]]]:
    """Mentions made ready, the stages that are on, and what these are asked for each mention.

    Raises:
        InputError, ConfigError: what `onoma.linking.Linker.link` says of these arguments.
    """
    chosen = components.chosen_stages(stages)
    prepared = components.prepare(mentions, contexts, chosen)
    if any(mention.context is not None for mention in prepared):
        components.check_contexts(chosen)
    reranker = components.reranker if "rerank" in chosen else None
    normalisation, with_variants = components.dictionary.normalisation, "variants" in chosen
    asked = [
        questions_of(mention, normalisation=normalisation, reranker=reranker, with_variants=with_variants)
        for mention in prepared
    ]
    return prepared, chosen, asked

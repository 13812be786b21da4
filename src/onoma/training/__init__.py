"""Training: recipes, batches, steps, checkpoints, one loop (`onoma.training.loop`) for all kinds.

`onoma.training.alignment` aligns names by synonyms (SapBERT), `onoma.training.biosyn` ranks a dictionary's names for
annotated mentions (BioSyn), `onoma.training.reranking` the candidates of a linker, `onoma.training.distillation` passes
on what a linker's encoder knows. The modules of settings need no torch, the others do.
"""

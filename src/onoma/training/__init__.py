"""The one training loop: recipes, batches, schedule, checkpoints.

``onoma.training.config`` needs no torch; ``onoma.training.loop`` does.
"""

"""What training pulls together and pushes apart: pure tensor mathematics.

Names of a batch are compared with one another (`cosine_similarities`), the informative pairs are marked
(`hard_triplet_masks` and its siblings), and a loss turns similarities and marks into one value per name.

Every loss here has the same form::

    similarity (B, B), PairMasks  ->  values (B,)

It reads only the similarities of an anchor (row) to its marked positives and negatives. Anchors without the
pairs that a loss needs have value zero. **The loss of a batch is the mean of all B values, zeros included**, as
in SapBERT; libraries that average only the values above zero give larger numbers.

Three are exceptions: `tiled_multi_similarity_loss` does mining, loss and gradient of a large batch in one pass, without
a (B, B) matrix; `marginal_likelihood_loss` takes the scores of candidates of each query (BioSyn); `distillation_loss`
compares the similarities with those of another encoder.
"""

from onoma.objectives.distillation import distillation_loss
from onoma.objectives.margin_losses import cosine_loss, lifted_structure_loss, triplet_loss
from onoma.objectives.marginal_likelihood import marginal_likelihood_loss
from onoma.objectives.mining import (
    MinedShares,
    PairMasks,
    all_pair_masks,
    hard_triplet_masks,
    mined_shares,
    multi_similarity_masks,
    semi_hard_masks,
)
from onoma.objectives.multi_similarity import multi_similarity_loss
from onoma.objectives.similarity import cosine_similarities, euclidean_distances
from onoma.objectives.softmax_losses import circle_loss, info_nce_loss, nca_loss
from onoma.objectives.tiled import tiled_multi_similarity_loss

__all__ = [
    "MinedShares",
    "PairMasks",
    "all_pair_masks",
    "circle_loss",
    "cosine_loss",
    "cosine_similarities",
    "distillation_loss",
    "euclidean_distances",
    "hard_triplet_masks",
    "info_nce_loss",
    "lifted_structure_loss",
    "marginal_likelihood_loss",
    "mined_shares",
    "multi_similarity_loss",
    "multi_similarity_masks",
    "nca_loss",
    "semi_hard_masks",
    "tiled_multi_similarity_loss",
    "triplet_loss",
]

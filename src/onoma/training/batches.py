"""Which pairs make up which batch: a pure function of seed and batch number, so that a resumed run sees the same ones.

`NeighbourBatches` depends on the weights too, through a table that is kept in the run folder.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onoma.errors import ConfigError, InputError, TrainingError
from onoma.pairs import PairSet
from onoma.training.alignment_config import TrainingConfig
from onoma.training.distributed import world_size
from onoma.training.kept_tables import keep_table, kept_table
from onoma.training.neighbours import Encode, nearest_of_other_concepts, search_seconds
from onoma.types import RowArray, Tell

_TIMED_NAMES = 2048
"""Names that are encoded to know how long all of them would take."""


class ShuffledRows:
    """Rows 0..n-1 in batches, epoch after epoch.

    Every epoch visits each row once in an order drawn from ``(seed, epoch)``; its last batch may be smaller.

    Args:
        n_rows: How many there are.
        at_once: Rows in a batch.
        seed: Of the order.

    Example:
        >>> rows = ShuffledRows(3, at_once=2, seed=0)
        >>> rows.steps_per_epoch, sorted([*rows.rows_of_step(0).tolist(), *rows.rows_of_step(1).tolist()])
        (2, [0, 1, 2])
    """

    def __init__(self, n_rows: int, *, at_once: int, seed: int) -> None:
        self._n_rows, self._at_once, self._seed = n_rows, at_once, seed
        self._epoch = -1
        self._order: RowArray = np.empty(0, np.int64)

    @property
    def steps_per_epoch(self) -> int:
        """Batches in one pass over the rows."""
        return math.ceil(self._n_rows / self._at_once)

    def rows_of_step(self, batch_number: int) -> RowArray:
        """Rows of a batch, numbered from 0 over the whole run, shape (rows of the batch,)."""
        epoch, position = divmod(batch_number, self.steps_per_epoch)
        if epoch != self._epoch:
            self._order = np.random.default_rng([self._seed, epoch]).permutation(self._n_rows)
            self._epoch = epoch
        return self._order[position * self._at_once : (position + 1) * self._at_once]


class Batches(ABC):
    """What the loop asks of batches; they are numbered from 0 over the whole run.

    Args:
        order: Of what is learned from, pass after pass.
    """

    def __init__(self, order: ShuffledRows) -> None:
        self._order = order

    @property
    def steps_per_epoch(self) -> int:
        """Batches in one pass over all that is learned from."""
        return self._order.steps_per_epoch

    @abstractmethod
    def names_of_step(self, batch_number: int) -> RowArray:
        """Rows of the names of a batch in the store, shape (names of the batch,)."""

    def end_at(self, n_batches: int) -> None:
        """Be told of how many batches the run is, before the first of them is asked for.

        Raises:
            ConfigError: these batches cannot be of use in so short a run.
        """
        return

    def prepare(self, batch_number: int, encode: Encode) -> None:
        """Make ready for a batch; to be called before each step with the number of its first batch.

        Nothing, where batches do not depend on the weights.
        """
        return

    def preparation_seconds(self, encode: Encode) -> tuple[float, float]:
        """About how long `prepare` takes, in seconds: the first time, and in the mean of a batch."""
        return 0.0, 0.0


def make_batches(config: TrainingConfig, pairs: PairSet, run_folder: Path, *, tell: Tell = lambda _: None) -> Batches:
    """The batches that a recipe asks for.

    Args:
        config: Settings of the run.
        pairs: What to train on.
        run_folder: Where the state of the unfinished run lies.
        tell: Called with sentences worth telling.

    Raises:
        InputError: there are no pairs.
    """
    chosen = config.batches
    if chosen.name == "random":
        return PairBatches(pairs.pairs, batch_pairs=config.batch_pairs, seed=config.seed)
    return NeighbourBatches(
        pairs.pairs,
        pairs.labels,
        run_folder,
        batch_pairs=config.batch_pairs,
        neighbours=chosen.neighbours,
        refresh_batches=chosen.refresh_steps * config.accumulation,
        warmup_batches=chosen.warmup_steps * config.accumulation,
        seed=config.seed,
        text_labels=pairs.text_labels,
        tell=tell,
    )


class PairBatches(Batches):
    """Shuffled batches of pairs, epoch after epoch, in the order of `ShuffledRows`.

    Args:
        pairs: Rows of training names, shape (P, 2).
        batch_pairs: Pairs in a batch.
        seed: Of the order.

    Raises:
        InputError: there are no pairs.

    Example:
        >>> batches = PairBatches(np.array([[0, 1], [2, 3], [4, 5]]), batch_pairs=2, seed=0)
        >>> batches.steps_per_epoch
        2
        >>> sorted(np.concatenate([batches.names_of_step(0), batches.names_of_step(1)]).tolist())
        [0, 1, 2, 3, 4, 5]
    """

    def __init__(self, pairs: npt.NDArray[np.integer], *, batch_pairs: int, seed: int) -> None:
        super().__init__(_order_of(pairs, at_once=batch_pairs, seed=seed))
        self._pairs = pairs

    def names_of_step(self, batch_number: int) -> RowArray:
        """Training-name rows of a batch: left names, then right names, shape (2 x pairs of the batch,)."""
        return _names(self._pairs, self._order.rows_of_step(batch_number))


class NeighbourBatches(Batches):
    """Pairs together with pairs of other concepts that the encoder, as it is now, finds similar.

    A batch has ``batch_pairs / (1 + neighbours)`` seed pairs, rounded down, in the order of `PairBatches`. Each brings
    ``neighbours`` companions: one of its two names, drawn at random, asks for the most similar names of as many other
    concepts, and of each the batch gets a pair that this name is part of, drawn at random. Where that gives a pair
    twice, or a seed has fewer neighbours, random pairs fill the batch up.

    One pass means that every pair has been a seed once. Most pairs come as companions too, so that it has
    ``1 + neighbours`` times as many batches as a pass of `PairBatches`. The last batch of a pass may be smaller.

    Every ``refresh_batches`` batches all names are encoded and compared anew. What was found for the seeds up to the
    next time is written to the run folder under the number of its first batch, and stays there: a resumed run reads
    it, as the weights that it was found with are gone. It is always made anew at its first batch, so that nothing of
    an abandoned run is taken for this one's. During warm-up companions are random pairs.

    Args:
        pairs: Rows of training names, shape (P, 2).
        labels: Class of each training name.
        run_folder: Where the tables are kept.
        batch_pairs: Pairs in a batch.
        neighbours: Companions of each seed, fewer than ``batch_pairs``.
        refresh_batches: Batches after which names are compared anew.
        warmup_batches: Batches before they are compared at all.
        seed: Of the order and of every draw.
        text_labels: Names with one text share a number, and never come together by their similarity.
        tell: Called with sentences worth telling.

    Raises:
        InputError: there are no pairs.

    Source:
        CODER++ (Zeng et al. 2022), section 3.2: a name comes with its nearest neighbours and with names of its concept.
        Differs: the neighbours bring names of their concepts too, as every name needs a positive.
    """

    def __init__(
        self,
        pairs: npt.NDArray[np.integer],
        labels: npt.NDArray[np.integer],
        run_folder: Path,
        *,
        batch_pairs: int,
        neighbours: int,
        refresh_batches: int,
        warmup_batches: int = 0,
        seed: int,
        text_labels: npt.NDArray[np.integer] | None = None,
        tell: Tell = lambda _: None,
    ) -> None:
        self._seeds_at_once = batch_pairs // (1 + neighbours)
        super().__init__(_order_of(pairs, at_once=self._seeds_at_once, seed=seed))
        self._pairs, self._labels, self._text_labels = pairs, labels, text_labels
        self._run_folder, self._tell, self._seed = run_folder, tell, seed
        self._batch_pairs, self._neighbours = batch_pairs, neighbours
        self._refresh, self._warmup = refresh_batches, warmup_batches
        self._end: int | None = None
        self._first = 0
        self._table: RowArray | None = None

    def end_at(self, n_batches: int) -> None:
        """Look for no more neighbours than so many batches need.

        Raises:
            ConfigError: the run is over before there are any.
        """
        if self._warmup >= n_batches:
            raise ConfigError(
                f"batches.warmup_steps: its {self._warmup} batches leave none of the run's {n_batches} for neighbours. "
                "Set it lower, train longer, or set batches=random."
            )
        self._end = n_batches

    def names_of_step(self, batch_number: int) -> RowArray:
        """Training-name rows of a batch: left names, then right names, shape (2 x pairs of the batch,).

        Until `prepare` was called for the first time companions are random pairs, which serves to measure the speed.

        Raises:
            TrainingError: the batch was not prepared.
        """
        seeds = self._order.rows_of_step(batch_number)
        chosen = seeds
        if self._table is not None and batch_number >= self._warmup:
            position = (batch_number - self._first) * self._seeds_at_once
            if not 0 <= position < len(self._table):
                raise TrainingError(f"batch {batch_number} was not prepared: call prepare before each step.")
            companions = self._table[position : position + len(seeds)].ravel()
            chosen = _distinct(np.concatenate([seeds, companions[companions >= 0]]))
        is_full = len(seeds) == self._seeds_at_once
        wanted = min(self._batch_pairs if is_full else len(seeds) * (1 + self._neighbours), len(self._pairs))
        random = np.random.default_rng([self._seed, batch_number, _FILLING])
        while len(chosen) < wanted:
            chosen = _distinct(np.concatenate([chosen, random.integers(0, len(self._pairs), wanted)]))[:wanted]
        return _names(self._pairs, chosen)

    def prepare(self, batch_number: int, encode: Encode) -> None:
        """Encode and compare the names if it is time to, or read what was found when it was.

        Args:
            batch_number: Of the first batch of the coming step.
            encode: See `onoma.training.neighbours.Encode`.

        Raises:
            TrainingError: what was found when it was time is gone.
        """
        if batch_number < self._warmup:
            return
        first = batch_number - (batch_number - self._warmup) % self._refresh
        if self._table is not None and first == self._first and batch_number != first:
            return
        file = self._run_folder / f"neighbours-{first:07}.npy"
        if batch_number == first:
            table = self._compare(first, encode)
            keep_table(file, table)
        else:
            n_seeds = len(self._batches_of_window(first)) * self._seeds_at_once
            table = kept_table(file, f"neighbours found at batch {first}", shape=(n_seeds, self._neighbours))
        self._first, self._table = first, table

    def preparation_seconds(self, encode: Encode) -> tuple[float, float]:
        """About how long comparing takes, once and per batch that it serves; measured on a part of the names."""
        candidates = np.unique(self._pairs)
        n_asking = min(len(self._batches_of_window(self._warmup)) * self._seeds_at_once, 2 * len(self._pairs))
        sample = candidates[:: -(-len(candidates) // _TIMED_NAMES)]
        started = time.perf_counter()
        width = encode(sample).shape[1]
        encoding = (time.perf_counter() - started) / len(sample) * len(candidates)
        searching = search_seconds(n_asking, len(candidates), width=width, neighbours=self._neighbours)
        once = encoding + searching / world_size()
        return once, once / self._refresh

    def _compare(self, first: int, encode: Encode) -> RowArray:
        """Companions of the seeds of all batches up to the next comparison, pair rows, shape (seeds, neighbours).

        Each batch has the same number of lines, unused in a batch with fewer seeds; -1 where there is no companion.
        """
        started = time.perf_counter()
        seeds = self._seeds_of_window(first)
        candidates = np.unique(self._pairs).astype(np.int64)
        self._tell(f"comparing {len(candidates):,} names by the present weights, for the next batches")
        # A line for each seed, so that what is drawn for one does not depend on how many there are.
        draws = np.random.default_rng([self._seed, first, _TABLE]).random((len(seeds), 1 + self._neighbours))
        asking = self._pairs[seeds].astype(np.int64)
        asking = np.where(draws[:, :1] < 0.5, asking, asking[:, ::-1])
        distinct, place = np.unique(asking, axis=0, return_inverse=True)
        found = nearest_of_other_concepts(
            distinct,
            candidates,
            self._labels,
            neighbours=self._neighbours,
            encode=encode,
            text_labels=self._text_labels,
            on_chunk=self._tell_progress,
        )
        names = found[place.reshape(-1)]

        by_name = np.argsort(self._pairs.reshape(-1), kind="stable")
        ordered = self._pairs.reshape(-1)[by_name]
        begins, ends = (np.searchsorted(ordered, names, side=side) for side in ("left", "right"))
        drawn = begins + (draws[:, 1:] * (ends - begins)).astype(np.int64)
        companions = by_name[np.minimum(drawn, len(by_name) - 1)] // 2
        self._tell(f"compared in {time.perf_counter() - started:,.0f} s")
        return np.where(names >= 0, companions, -1)

    def _tell_progress(self, done: int, total: int) -> None:
        if done < total:
            self._tell(f"{done:,} of {total:,} names compared")

    def _batches_of_window(self, first: int) -> range:
        end = first + self._refresh
        return range(first, end if self._end is None else max(first + 1, min(end, self._end)))

    def _seeds_of_window(self, first: int) -> RowArray:
        """Seed pairs of all batches up to the next comparison; where a batch has fewer, they repeat."""
        batches = (self._order.rows_of_step(batch_number) for batch_number in self._batches_of_window(first))
        return np.concatenate([np.resize(seeds, self._seeds_at_once) for seeds in batches])


_FILLING, _TABLE = 1, 2
"""Which draw a random stream is for, after the seed and a batch number."""


def _order_of(pairs: npt.NDArray[np.integer], *, at_once: int, seed: int) -> ShuffledRows:
    if len(pairs) == 0:
        raise InputError("there are no pairs to train on", expected="at least one concept with two names")
    return ShuffledRows(len(pairs), at_once=at_once, seed=seed)


def _names(pairs: npt.NDArray[np.integer], rows: RowArray) -> RowArray:
    """Left names, then right names, of some pairs."""
    return pairs[rows].T.reshape(-1).astype(np.int64)


def _distinct(rows: RowArray) -> RowArray:
    """The same rows in the same order, each only once.

    Example:
        >>> _distinct(np.array([3, 1, 3, 2])).tolist()
        [3, 1, 2]
    """
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]

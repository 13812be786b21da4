"""How many steps a run has: as many as the recipe says, or as fit into its time."""

from __future__ import annotations

import math
from typing import Any

from onoma.errors import TrainingError
from onoma.training.batches import Batches
from onoma.training.distributed import broadcast
from onoma.training.evaluating import Evaluations
from onoma.training.neighbours import Encode
from onoma.training.optimiser_step import OptimiserStep
from onoma.training.run_config import RunConfig


def plan_steps(
    config: RunConfig, batches: Batches, step: OptimiserStep[Any], encode: Encode, evaluations: Evaluations
) -> int:
    """Steps of a run. For a budget of minutes the speed is measured, which changes neither model nor random state.

    Args:
        config: Says how long.
        batches: Of the run.
        step: Of the run, timed if need be.
        encode: Vectors of training names, for batches that depend on them.
        evaluations: Of the run; the first one is made and timed if need be.

    Raises:
        TrainingError: evaluations would take more than half of the budget, or one step more than all passes.
    """
    if config.steps is not None:
        return config.steps
    if config.epochs is not None:
        n_steps = config.epochs * batches.steps_per_epoch / config.accumulation
        if config.accumulation > 1 and round(n_steps, 6) < 1:
            raise TrainingError(
                f"one step takes {config.accumulation} batches (accumulation), and {config.epochs:g} passes over what "
                f"is learned from are only {config.epochs * batches.steps_per_epoch:g}. Set accumulation to less, or "
                "epochs to more."
            )
        return max(1, math.ceil(round(n_steps, 6)))  # 0.07 x 100 is a little more than 7
    budget = 60 * (config.minutes or 0.0)
    # The optimiser's own time was not measured; a tenth is more than it takes for small models.
    # The clocks of several processes differ, and all shall come to the same number.
    once, each_batch = batches.preparation_seconds(encode)
    # However short the run, what its first batch needs is made ready whole; steps have half of the time in any case.
    once, each_step = broadcast((once, 1.1 * step.seconds_per_step() + config.accumulation * each_batch))
    left = budget - min(once, budget / 2)
    if not evaluations.wanted:
        return max(1, int(left / each_step))
    each_evaluation = evaluations.measure(0).seconds
    fixed, with_steps = evaluations.cost(each_evaluation)
    steps = max(1, int((left - fixed) / (each_step + with_steps)))
    if fixed + steps * with_steps > budget / 2:
        raise TrainingError(
            f"an evaluation takes {each_evaluation:,.2g} s, so that evaluations would take more than half of the "
            f"{config.minutes:g} minutes. Give more minutes, set evaluate_steps so that there are fewer, or measure on "
            "a smaller dictionary."
        )
    return steps

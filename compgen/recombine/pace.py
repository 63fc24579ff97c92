"""How many updates there is time for, if `minutes` are given: the first updates are timed on the machine that trains.

Settings assume a machine of some speed (`settings.RATE`); a slower one would train for several times the minutes asked
for. Updates are timed on a copy of the network, which is thrown away, so that timing does not change the training. An
interrupted training goes on with the number of updates that it began with.
"""

import copy
import time
from pathlib import Path

from compgen.data.vocabulary import PAD_ID
from compgen.models.adam import Adam
from compgen.models.network import Network
from compgen.models.products import precision
from compgen.models.seeding import undrawn
from compgen.progress import note
from compgen.recombine.config import RecombineConfig
from compgen.recombine.rows import NeighborhoodExamples
from compgen.recombine.settings import FEWEST
from compgen.training.config import OptimisationConfig
from compgen.training.loop import saved_identity

TIMED, WARM = 20, 2  # the most updates that are timed, and the updates before these, which take longer
SHARE = 0.05  # of the minutes: the most that timing may take
STEPS = "optimisation.steps"


def paced(
    asked: RecombineConfig,
    config: RecombineConfig,
    network: Network,
    examples: NeighborhoodExamples,
    out: Path,
    *,
    resume: bool,
    device: str,
    quiet: bool,
) -> tuple[RecombineConfig, str]:
    """Return the configuration with as many updates as there is time for, and what was changed, in words.

    There are at least FEWEST updates, and never more than `config` has. Without `minutes`, without `timed`, or where a
    number of updates was asked for, the configuration stays as it is.

    Args:
        asked: the configuration as it was given.
        config: the configuration with what was found from the data.
        network: the network at the beginning of training.
        examples: those to train on.
        out: where the checkpoint will be.
        resume: whether an interrupted training goes on.
        device, quiet: as for training.
    """
    planned = config.optimisation.steps
    given = asked.values_set.get("optimisation", {}).get("steps")
    if asked.minutes is None or not asked.timed or planned is None or given is not None:
        return config, ""
    said = ""
    if resume:
        steps = saved_identity(out).get(STEPS, planned)
        said = "" if steps == planned else f"{steps:,} updates, as when training began"
    else:
        seconds = _seconds(network, examples, config.optimisation, asked.minutes * 60 * SHARE, device)
        steps = max(min(FEWEST, planned), min(planned, int(asked.minutes * 60 / seconds)))
        took, whole = f"an update takes {seconds:.2g} s here, so that", steps * seconds / 60
        if whole > asked.minutes:
            said = f"{took} {steps:,}, the fewest that can teach anything, take about {whole:.1f} min, not "
            said += f"{asked.minutes:g}: set {STEPS} for fewer"
        elif steps < planned:
            said = f"{took} there is time for {steps:,}, not {planned:,}"
    if said:
        note(f"settings: {said}", quiet)
    return config.model_copy(update={"optimisation": config.optimisation.model_copy(update={"steps": steps})}), said


def _seconds(
    network: Network, examples: NeighborhoodExamples, config: OptimisationConfig, most: float, device: str
) -> float:
    """The seconds that an update takes: the mean of a few, on a copy of the network.

    `most` are the seconds that timing may take. The state of random numbers is put back.
    """
    with undrawn(device):
        trial = copy.deepcopy(network).to(device).train()
        optimiser = Adam(trial.parameters(), lr=config.learning_rate, fused=True)  # as training has it
        taken: list[float] = []
        batches = examples.plan(0)
        for number in range(WARM + TIMED):
            began = time.monotonic()
            sequences, memories = examples.collate(batches[number % len(batches)])
            optimiser.zero_grad()
            with precision(device, config.precision == "bfloat16"):
                loss = trial.loss(sequences.to(device), memories.to(device)).sum()
            (loss / max(1, int((sequences != PAD_ID).sum()))).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            float(loss.detach())  # waits for the device
            taken.append(time.monotonic() - began)
            if len(taken) > WARM and sum(taken) > most:
                break
    return max(1e-9, sum(taken[WARM:]) / len(taken[WARM:]))

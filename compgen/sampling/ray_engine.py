"""Sampling on a Ray cluster: a task draws a range of addresses and judges each draw alone.

A task is a function of its work and its range alone, so Ray may run it anywhere, and again when a worker is lost. What
needs all draws in order (the filter unique, the counts, when to stop) is left to the caller, who gets the results in
order of address, as on one machine.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from compgen.cluster import cluster, results
from compgen.errors import BundleError
from compgen.runtime.bundle import Bundle
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.sampling.batching import Addresses, Memories, run_slots
from compgen.sampling.resampling import Filter, FilterConfig, Kept, Training

RANGE = 4096  # addresses: some seconds of one CPU, and a megabyte or two of results
RETRIES = 5  # of a range whose worker was lost


@dataclass(frozen=True)
class Work:
    """What all ranges of a run have in common."""

    bundle: str  # a path that holds the bundle on every machine of the cluster
    identity: str  # of the bundle
    seed: int
    temperature: tuple[float, float]
    slots: int
    filters: FilterConfig


def judged(work: Work, start: int, stop: int, workers: int | None = None) -> Iterator[Kept | str]:
    """Yield the draws of addresses start .. stop - 1 in order, as `Filter.judge` judges them.

    Uses the Ray that runs in this process, else the cluster that the environment variable RAY_ADDRESS names, else one
    started on this machine, with `workers` CPUs (all by default), while the iterator lives. At most two ranges for each
    of `workers` (by default, for each CPU of the cluster) are under way or wait to be read.

    Raises:
        UserError: Ray is not installed, its cluster cannot be reached, it keeps losing the workers of a range, or a
            worker cannot use the bundle.
    """
    with cluster(workers) as (ray, cpus):
        task = ray.remote(judge_range).options(num_cpus=1, max_retries=RETRIES)
        waiting: deque[tuple[int, Any]] = deque()
        try:
            for first in range(start, stop, RANGE):
                waiting.append((first, task.remote(work, first, min(first + RANGE, stop))))
                if len(waiting) == 2 * cpus:
                    yield from _result(ray, *waiting.popleft())
            while waiting:
                yield from _result(ray, *waiting.popleft())
        finally:
            for _, reference in waiting:
                ray.cancel(reference)


def judge_range(work: Work, start: int, stop: int) -> list[Kept | str]:
    """The task: return the draws of addresses start .. stop - 1 in order, judged, made by one thread."""
    memories, max_length, judge = _opened(work)
    batches = run_slots(
        memories,
        Addresses(start, stop),
        seed=work.seed,
        slots=work.slots,
        max_length=max_length,
        temperature=work.temperature,
        unwanted=judge.unwanted,
    )
    return list(map(judge.judge, sorted(chain.from_iterable(batches), key=lambda draw: draw.index)))


@lru_cache(maxsize=1)
def _opened(work: Work) -> tuple[Memories, int, Filter]:
    """What a worker process reads once for all its ranges: prototypes, maximal length and filter."""
    bundle = Bundle.load(work.bundle)
    if bundle.identity != work.identity:
        raise BundleError(f"{work.bundle}: not the same bundle on all machines of the Ray cluster")
    assert bundle.pool is not None, "a generator has a pool"
    judge = Filter(work.filters, Training(bundle.pool))
    # CUDA would round differently from other workers.
    memories = Memories(OnnxBackend(bundle, threads=1, provider="cpu"), judge.pool(bundle.pool))
    return memories, bundle.manifest.max_length, judge


def _result(ray: Any, first: int, reference: Any) -> list[Kept | str]:
    with results(ray, f"the range from address {first:,} was lost with its worker, {RETRIES} retries included"):
        found: list[Kept | str] = ray.get(reference)
    return found

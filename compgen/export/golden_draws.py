"""Writing golden draws: at every export, so that a bundle can be verified where it is to run (`cgen verify`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data import random
from compgen.data.vocabulary import EOS_ID, forbidden
from compgen.export.verify import made_up_sources
from compgen.runtime.backend import Backend, Decoder, Ints, State
from compgen.runtime.bundle import Bundle
from compgen.runtime.golden import SPREAD, Golden, GoldenAnswer, GoldenDraw, GoldenStream
from compgen.runtime.manifest import GOLDEN
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import advance, as_sources, greedy, opening
from compgen.sampling.batching import Draw, draws
from compgen.trained.architectures import GeneratorModel, Request

# Seed, first address and how many draws; addresses beyond 32 bits have to be right, too.
STREAMS = ((0, 0, 100), (2**64 - 1, 2**40 + 7, 60), (2**33 + 1, 2**33, 60))
ANSWERS = 200
FEWEST = 10  # draws or answers: of fewer safe ones, as many are taken as are nearest to safe
SAFE = 1e-3  # how far, in probability, a golden draw stays from a boundary between two tokens; rounding moves by 1e-5
SAFE_IN_INTEGERS = 2e-2  # where another rounding may be a level of 8 bits
TRIES = 4  # candidates, at most, for each draw or answer that is wanted
SEED = 20_261


def draws_of(bundle: Bundle, backend: Backend) -> Golden:
    """Return draws of a recurrent generator by the step, the last stream at temperature 1.

    They are safe from rounding, unless fewer than FEWEST are: then the FEWEST of the first stream that are safest.
    """
    assert bundle.pool is not None, "a generator has a pool"
    pool, length = bundle.pool, bundle.manifest.max_length
    safe = _safe(bundle)
    first, second = bundle.manifest.sampling["temperature"]
    warmths = [(float(first), float(second))] * (len(STREAMS) - 1) + [(1.0, 1.0)]
    found: list[list[tuple[float, GoldenDraw]]] = []
    for (seed, start, wanted), warmth in zip(STREAMS, warmths, strict=True):
        some: list[tuple[float, GoldenDraw]] = []
        for begin in range(start, start + TRIES * wanted, wanted):
            end = begin + wanted
            drawn = draws(backend, pool, seed=seed, start=begin, stop=end, max_length=length, temperature=warmth)
            addresses = np.arange(begin, end, dtype=np.int64)
            far = margins(backend, pool, seed, addresses, warmth, length).tolist()
            some += zip(far, map(_golden, drawn), strict=True)
            if sum(margin >= safe for margin, _ in some) >= wanted:
                break
        found.append(some)
    chosen = [
        _close_together([draw for margin, draw in some if margin >= safe][:wanted])
        for some, (*_, wanted) in zip(found, STREAMS, strict=True)
    ]
    if sum(map(len, chosen)) < FEWEST:
        widest = sorted(found[0][: SPREAD * FEWEST], key=lambda one: -one[0])[:FEWEST]
        chosen = [sorted((draw for _, draw in widest), key=lambda draw: draw.index), *[[]] * (len(STREAMS) - 1)]
    streams = [
        GoldenStream(seed=seed, temperature=list(warmth), samples=samples)
        for (seed, *_), warmth, samples in zip(STREAMS, warmths, chosen, strict=True)
        if samples
    ]
    return Golden(streams=streams)


def _close_together(samples: list[GoldenDraw]) -> list[GoldenDraw]:
    """The longest beginning of a stream that skips no more addresses than may be (SPREAD)."""
    whole = range(len(samples), 0, -1)
    count = next((n for n in whole if samples[n - 1].index - samples[0].index <= SPREAD * n), 0)
    return samples[:count]


def _safe(bundle: Bundle) -> float:
    return SAFE if bundle.manifest.approximation is None else SAFE_IN_INTEGERS


def draws_of_grammar(model: GeneratorModel) -> Golden:
    """Return draws of a grammar, in which nothing is rounded."""
    streams = []
    for seed, start, wanted in STREAMS:
        drawn = model.draws(Request(seed, start, start + wanted, batch=wanted))
        samples = [_golden(draw) for draw in drawn]
        streams.append(GoldenStream(seed=seed, temperature=list(model.temperature), samples=samples))
    return Golden(streams=streams)


def answers_of(bundle: Bundle, decoder: Decoder) -> Golden:
    """Return a predictor's answers to sources of random tokens.

    They are safe from rounding, unless fewer than FEWEST are: then the FEWEST that are safest.
    """
    rng, safe, limit = random.stream(random.Purpose.PROBES, SEED), _safe(bundle), bundle.manifest.max_length
    found: list[tuple[float, GoldenAnswer]] = []
    for _ in range(TRIES):
        sources = made_up_sources(rng, ANSWERS, len(bundle.vocabulary))
        margins = _answer_margins(decoder, sources, limit).tolist()
        for source, (target, score), margin in zip(sources, greedy(decoder, sources, limit), margins, strict=True):
            finished = len(target) < limit
            answer = GoldenAnswer(source=source, target=target, finished=finished, log_prob=score)
            found.append((margin, answer))
        if sum(margin >= safe for margin, _ in found) >= ANSWERS:
            break
    some = [answer for margin, answer in found if margin >= safe]
    widest = [answer for _, answer in sorted(found, key=lambda one: -one[0])[:FEWEST]]
    return Golden(answers=some[:ANSWERS] if len(some) >= FEWEST else widest)


def write_golden(folder: Path, golden: Golden) -> None:
    """Write golden draws to a bundle's folder, one a line."""
    lines = golden.model_dump_json(exclude_defaults=True)
    lines = lines.replace('{"index"', '\n{"index"').replace('{"source"', '\n{"source"')
    (folder / GOLDEN).write_text(lines + "\n", "utf-8")


def margins(
    backend: Backend, pool: PrototypePool, seed: int, samples: Ints, temperature: tuple[float, float], max_length: int
) -> NDArray[np.float64]:
    """Return by how much probability each draw is safe from being another: (B) for the addresses `samples` (B).

    It is the least distance, over the draw's tokens, of u to the token's boundaries; at temperature 0, by how much the
    chosen token is more probable than the second.
    """
    chosen = pool.choose(seed, samples)
    state = opening(backend, pool.sequences(chosen), 0, backend.shape.fed(seed, samples))
    uniforms = random.uniforms(seed, samples, max_length)
    heat = np.array(temperature, dtype=backend.shape.dtype)

    def step(at: int) -> NDArray[np.float64]:
        warmth = np.array(temperature)[state["half"]]
        following, log_probs = advance(backend, state, uniforms[:, at].astype(backend.shape.dtype), heat)
        state.update(following)
        return _margin(log_probs, state["token"], uniforms[:, at], warmth, at)

    return _least(state, step, max_length)


def _answer_margins(decoder: Decoder, sources: list[list[int]], max_length: int) -> NDArray[np.float64]:
    """Return the margins (B) of greedy answers."""
    state, nothing = decoder.open(as_sources(sources)), np.zeros(len(sources))

    def step(at: int) -> NDArray[np.float64]:
        following, log_probs = decoder.advance(state)
        state.update(following)
        return _margin(log_probs, state["token"], nothing, nothing, at)

    return _least(state, step, max_length)


def _least(state: State, step: Callable[[int], NDArray[np.float64]], max_length: int) -> NDArray[np.float64]:
    """Return the least margin of each row up to its end; `step` advances the state and returns its margins."""
    least = np.ones(len(state["token"]))
    running = np.ones(len(least), dtype=bool)
    for at in range(max_length):
        margin = step(at)
        least = np.where(running, np.minimum(least, margin), least)
        running &= state["token"] != EOS_ID
        if not running.any():
            break
    return least


def _margin(
    log_probs: NDArray[Any], token: Ints, uniform: NDArray[Any], warmth: NDArray[Any], at: int
) -> NDArray[np.float64]:
    """Return the margins (B) of one step from log-probabilities (B, V), tokens, uniforms and temperatures (B)."""
    allowed = log_probs.astype(np.float64)
    allowed[:, forbidden(at)] = -np.inf
    rows = np.arange(len(token))
    ordered = np.sort(np.exp(allowed), axis=1)
    greedy_margin = ordered[:, -1] - ordered[:, -2]
    heat = np.where(warmth == 0, 1.0, warmth)[:, None]
    weights = np.exp((allowed - allowed.max(axis=1, keepdims=True)) / heat)
    cdf = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    below = np.where(token > 0, cdf[rows, token - 1], 0.0)
    drawn_margin = np.minimum(np.abs(uniform - below), np.abs(cdf[rows, token] - uniform))
    margin: NDArray[np.float64] = np.where(warmth == 0, greedy_margin, drawn_margin)
    return margin


def _golden(draw: Draw) -> GoldenDraw:
    return GoldenDraw(
        index=draw.index,
        prototypes=list(draw.prototypes),
        tokens=list(draw.tokens),
        finished=draw.finished,
        log_prob=draw.log_prob,
    )

"""Tokens a second of exported Transformers, greedily and by beams, beside CTranslate2 on the same weights.

    pip install --target build/ct2 ctranslate2
    python scripts/bench/transformers.py --peer build/ct2

Networks of random weights in the sizes of `transformer.toml` and `transformer_small.toml` are exported, and their
weights are put into CTranslate2's own specification of a Transformer; without --peer its rows are left out. All decode
the same sources on one thread, in turns within one process, whose processor time is measured; what they take to open
is not counted. "same" are targets that are those of the checkpoint in PyTorch.

The limit of a batch is its multiplications, without padding, at the measured rate of ONNX Runtime's matrix product; of
single sources it is the decoder's weights, each read once a token, at the measured rate at which a product of a matrix
with a vector reads as many bytes. Without the C++ runner (`make runner`) its rows are left out.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from throughput import cpu_model, matrix_rates, rate

from compgen.api import Predictor
from compgen.data.vocabulary import EOS_ID, NEVER_WRITTEN, SPECIALS, Vocabulary
from compgen.errors import UserError
from compgen.export.assemble import seal
from compgen.export.bundle_writer import export
from compgen.models.config import TransformerNetwork
from compgen.models.transformer import Transformer
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import MANIFEST, STEP_WEIGHTS, Manifest
from compgen.sampling import native
from compgen.trained.checkpoint import Checkpoint
from compgen.training.config import TransformerConfig

SIZES = {"transformer_small": {"size": 128, "inner": 512}, "transformer": {"size": 256, "inner": 1024}}
SEED, WORDS, LONGEST, MAX_LENGTH = 5, 60, 24, 48  # of random sources and targets
CASES = {(1, 1): 24, (1, 64): 256, (5, 1): 12, (5, 64): 128}  # beam and batch, and how many sources
Words = list[str]
Decode = Callable[[list[Words], int, int], list[Words]]  # of sources, by a beam, in a batch


class Program(NamedTuple):
    """Something that decodes."""

    name: str
    decode: Decode


def checkpoint_of(sizes: dict[str, int]) -> Checkpoint:
    """A predictor of random weights. With large embeddings, which are the output's, it would repeat what it read."""
    torch.manual_seed(SEED)
    vocabulary = Vocabulary.of([[f"w{number}" for number in range(WORDS)]])
    config = TransformerNetwork.model_validate(sizes)
    network = Transformer(config, len(vocabulary))
    for parameter in network.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    network.embedding.weight.data *= 0.02
    network.embedding.weight.data[EOS_ID] *= 1.5  # so that targets end
    whole = TransformerConfig(network=config).model_dump(mode="json")
    return Checkpoint("predictor", network.eval(), vocabulary, whole, MAX_LENGTH)


def sources_of(vocabulary: Vocabulary, count: int) -> list[Words]:
    """Random sources of unlike lengths."""
    rng = np.random.default_rng(SEED)
    return [rng.choice(vocabulary.tokens[len(SPECIALS) :], rng.integers(1, LONGEST + 1)).tolist() for _ in range(count)]


# CTranslate2.


def linear(spec: Any, *layers: torch.nn.Linear) -> None:
    """Put layers into one, one after another."""
    spec.weight = np.concatenate([layer.weight.detach().numpy() for layer in layers])
    spec.bias = np.concatenate([layer.bias.detach().numpy() for layer in layers])


def norm(spec: Any, layer: torch.nn.LayerNorm) -> None:
    """Put a normalisation's weights in place."""
    spec.gamma, spec.beta = layer.weight.detach().numpy(), layer.bias.detach().numpy()


def attention(spec: Any, before: torch.nn.LayerNorm, layer: Any) -> None:
    """Put an attention's weights in place, with those of the normalisation before it."""
    norm(spec.layer_norm, before)
    parts = [(layer.query, layer.key_value)] if len(spec.linear) == 2 else [(layer.query,), (layer.key_value,)]
    for one, layers in zip(spec.linear, [*parts, (layer.out,)], strict=True):
        linear(one, *layers)


def inner(spec: Any, layers: Any) -> None:
    """Put a feed-forward layer's weights in place."""
    norm(spec.layer_norm, layers[0])
    linear(spec.linear_0, layers[1])
    linear(spec.linear_1, layers[4])


def specification(checkpoint: Checkpoint) -> Any:
    """CTranslate2's specification of the model, with its weights."""
    from ctranslate2.specs import TransformerSpec

    network: Transformer = checkpoint.network
    config, tokens = network.config, list(checkpoint.vocabulary.tokens)
    spec = TransformerSpec.from_config((config.layers, config.layers), config.heads, pre_norm=True)
    embedding = network.embedding.weight.detach().numpy()
    angles = torch.arange(1, 4 * MAX_LENGTH).unsqueeze(1) * network.frequency  # our first position is 1
    waves = torch.cat([angles.sin(), angles.cos()], dim=1).numpy()
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = spec.decoder.projection.weight = embedding
    # As ours, it writes no special symbol: there is no weight for that, but a bias.
    spec.decoder.projection.bias = np.zeros(len(tokens), dtype=np.float32)
    spec.decoder.projection.bias[list(NEVER_WRITTEN)] = -1e9
    spec.encoder.position_encodings.encodings = spec.decoder.position_encodings.encodings = waves
    norm(spec.encoder.layer_norm, network.encoder_norm)
    norm(spec.decoder.layer_norm, network.decoder_norm)
    for one, layer in zip(spec.encoder.layer, network.encoder, strict=True):
        attention(one.self_attention, layer.norm, layer.own)
        inner(one.ffn, layer.inner)
    for one, layer in zip(spec.decoder.layer, network.layers, strict=True):
        attention(one.self_attention, layer.norm, layer.own)
        attention(one.attention, layer.across_norm, layer.across)
        inner(one.ffn, layer.inner)
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    spec.config.decoder_start_token, spec.config.add_source_eos = "<s>", True
    return spec


def ctranslate2(checkpoint: Checkpoint, folder: Path, kind: str) -> Program:
    """The model in CTranslate2, in a type of numbers."""
    import ctranslate2 as peer

    spec = specification(checkpoint)
    spec.validate()
    folder.mkdir()
    spec.save(str(folder))
    translator = peer.Translator(str(folder), compute_type=kind, inter_threads=1, intra_threads=1)

    def decode(sources: list[Words], beam: int, batch: int) -> list[Words]:
        found = translator.translate_batch(
            sources,
            max_batch_size=batch,
            beam_size=beam,
            length_penalty=0,
            max_decoding_length=MAX_LENGTH,
            min_decoding_length=1,
        )
        return [result.hypotheses[0] for result in found]

    return Program(f"CTranslate2, {kind}", decode)


# Ours.


class _Questions(ctypes.Structure):
    _fields_ = (
        ("sources", ctypes.c_char_p),
        ("best", ctypes.c_int64),
        ("beam", ctypes.c_int64),
        ("batch", ctypes.c_int64),
        ("workers", ctypes.c_int),
    )


def in_cpp(name: str, path: Path) -> Program | None:
    """A bundle in the C++ runner, by its library; None where it is not built."""
    try:
        library = ctypes.CDLL(str(native.runner().with_name("libcompgen.so")))
    except (OSError, UserError):
        return None
    os.environ.update(native.environment())
    model, take = ctypes.c_void_p(), ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    assert library.compgen_open(str(path).encode(), ctypes.byref(model), None) == 0

    def decode(sources: list[Words], beam: int, batch: int) -> list[Words]:
        lines: list[bytes] = []
        keep = take(lambda _, line, length: bool(lines.append(ctypes.string_at(line, length))))
        text = "".join(" ".join(source) + "\n" for source in sources).encode()
        questions = _Questions(sources=text, best=1, beam=beam, batch=batch, workers=1)
        assert library.compgen_predict(model, ctypes.byref(questions), keep, None, None) == 0
        return [json.loads(line)["target"] for line in lines]

    return Program(name, decode)


def in_python(path: Path) -> Program:
    """A bundle in Python's ONNX Runtime."""
    from compgen.runtime.beam import beam as search
    from compgen.runtime.predict import greedy

    loaded = Predictor.load(path, provider="cpu")
    words = Bundle.load(path).vocabulary
    ids = {word: number for number, word in enumerate(words)}

    def decode(sources: list[Words], beam: int, batch: int) -> list[Words]:
        numbers = [[ids[word] for word in source] for source in sources]
        if beam == 1:
            found = greedy(loaded.decoder, numbers, MAX_LENGTH, batch)
        else:
            found = search(loaded.decoder, numbers, beam, MAX_LENGTH, batch=batch)
        return [[words[token] for token in target] for target, _ in found]

    return Program("ONNX Runtime, Python", decode)


def without_own_step(path: Path, folder: Path) -> Path:
    """The bundle without the weights of the C++ runner's own step, so that it runs the graph."""
    folder.mkdir()
    for file in path.iterdir():
        if file.name not in (MANIFEST, STEP_WEIGHTS):
            (folder / file.name).write_bytes(file.read_bytes())
    seal(folder, Manifest.model_validate_json((path / MANIFEST).read_bytes()))
    return folder


def programs_of(checkpoint: Checkpoint, folder: Path, peer: bool) -> list[Program]:
    """All that decode the model here."""
    checkpoint.save(folder / "model.pt")
    path = folder / "bundle"
    export(folder / "model.pt", path, batches={8: 16}, quiet=True)
    programs: list[Program | None] = [in_python(path), in_cpp("C++, graph", without_own_step(path, folder / "graph"))]
    if (path / STEP_WEIGHTS).exists():
        programs.append(in_cpp("C++, own step", path))
    export(folder / "model.pt", folder / "ours8", batches={8: 16}, int8=True, quiet=True)
    programs.append(in_cpp("C++, own step, int8", folder / "ours8"))
    if peer:
        programs += [ctranslate2(checkpoint, folder / kind, kind) for kind in ("float32", "int8")]
    return [program for program in programs if program]


# The limit.


def layers_of(network: Transformer) -> tuple[int, int]:
    """Multiplications of a source token, with what the decoder remembers of it, and of a target token."""
    c = network.config
    square, forward = c.size * c.size, 2 * c.size * c.inner
    source = c.layers * (4 * square + forward) + c.layers * 2 * square
    target = c.layers * (6 * square + forward) + c.size * network.vocabulary
    return source, target


def read_rate(numbers: int) -> float:
    """Numbers a second, in billions, that a product of a matrix with a vector reads, the best of many."""
    matrix = torch.rand(numbers // 512, 512)
    vector = torch.rand(512)
    return rate(lambda: matrix @ vector, float(numbers))


def limit(network: Transformer, batch: int, sources: list[Words], targets: list[Words]) -> float:
    """Seconds that targets need at the least, greedily."""
    by_source, by_target = layers_of(network)
    read, written = (sum(len(words) + 1 for words in some) for some in (sources, targets))
    product = matrix_rates(network.config.size, 1).onnx
    if batch == 1:
        return 2e-9 * read * by_source / product + 1e-9 * written * by_target / read_rate(by_target)
    return 2e-9 * (read * by_source + written * by_target) / product


def measured(programs: list[Program], sources: list[Words], beam: int, batch: int, repeats: int) -> list[list[float]]:
    """Processor seconds of each program, in turns."""
    seconds: list[list[float]] = [[] for _ in programs]
    for _ in range(repeats):
        for program, taken in zip(programs, seconds, strict=True):
            began = time.process_time()
            program.decode(sources, beam, batch)
            taken.append(time.process_time() - began)
    return seconds


def spread(values: list[float], digits: int = 0) -> str:
    """Median, and least to most."""
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def report(name: str, checkpoint: Checkpoint, asked: argparse.Namespace) -> None:
    """Print the rows of one network."""
    with tempfile.TemporaryDirectory() as folder:
        programs = programs_of(checkpoint, Path(folder), bool(asked.peer))
        truth = Predictor.load(Path(folder) / "model.pt", threads=1)
        for (beam, batch), count in CASES.items():
            sources = sources_of(checkpoint.vocabulary, count * asked.times)
            targets = [list(target) for target in truth.predict(sources, beam)]
            tokens = sum(len(target) + (len(target) < MAX_LENGTH) for target in targets)
            found = [program.decode(sources, beam, batch) for program in programs]
            seconds = measured(programs, sources, beam, batch, asked.repeats)
            least = limit(checkpoint.network, batch, sources, targets) if beam == 1 else 0.0
            title = f"{name}, beam {beam}, batch {batch}, {tokens / len(targets):.0f} tokens a target"
            print(f"| *{title}* | {f'*{tokens / least:,.0f}*' if least else ''} | | | |")
            for program, given, taken in zip(programs, found, seconds, strict=True):
                same = sum(a == b for a, b in zip(given, targets, strict=True)) / len(targets)
                share = f"{least / statistics.median(taken):.0%}" if least else ""
                rivals = [one for other, one in zip(programs, seconds, strict=True) if other.name.endswith("float32")]
                ratios = [theirs / ours for theirs, ours in zip(rivals[0], taken, strict=True)] if rivals else []
                against = spread(ratios, 2) if ratios and "float32" not in program.name else ""
                rates = spread([tokens / one for one in taken])
                print(f"| {program.name} | {rates} | {share} | {against} | {same:.1%} |", flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="where pip put CTranslate2")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--times", type=int, default=1, help="as many sources as usual")
    parser.add_argument("--network", choices=SIZES, action="append")
    asked = parser.parse_args()
    if asked.peer:
        sys.path.append(str(asked.peer))
    torch.set_num_threads(1)
    print(f"{cpu_model()}, one thread\n")
    print("| program | tokens/s | of the limit | x CTranslate2, float32 | same |\n|---|---|---|---|---|")
    for name in asked.network or SIZES:
        report(name, checkpoint_of(SIZES[name]), asked)


if __name__ == "__main__":
    main()

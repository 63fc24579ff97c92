"""The model card of a bundle: `README.md`, written from its manifest alone."""

import json

from compgen.runtime.manifest import Approximation, Manifest, Parity

PURPOSE = {
    "generator": "makes new training examples (source and target) by recombining those it was trained on",
    "predictor": "gives the target of a source",
}
USE = {
    "generator": """    compgen sample exported/{name} -n 100 --seed 1 -o samples.jsonl

or in Python

    import compgen
    samples = compgen.Generator.load("exported/{name}").sample(100, seed=1)
""",
    "predictor": """    compgen evaluate exported/{name} DATA

or in Python

    import compgen
    targets = compgen.Predictor.load("exported/{name}").predict([["some", "source"]])
""",
}
FILES = {
    "encoder.onnx": "one encoder pass: tokens to attention memory",
    "start.onnx": "last encoder states to the decoder's first state",
    "step.onnx": "one decoding step with explicit state, for continuous batching and beam search",
    "step.safetensors": "the step's weights by name, for the C++ runner, which has the step in its own code",
    "sampler.onnx": "encoder and whole sampling loop in one graph",
    "sampler.ts": "the same for TorchScript: methods encode, start, step, and the loop as forward",
    "golden.json": "draws, or answers, that every runtime must give: `compgen verify` looks whether it does",
    "vocabulary.json": "tokens in the order of their ids",
    "pool.safetensors": "prototypes and which of them go together",
    "rules.txt": "the grammar, a rule a line",
    "targets.cfg": "the grammar of well-formed targets; empty if there is none",
    "scores.safetensors": "how probable rules are in their places",
}


def card(manifest: Manifest, name: str) -> str:
    """Markdown that says what a bundle is, how to use it, what it was trained on and how far it can be trusted."""
    sections = [
        f"# {name}\n\nA {manifest.kind} made by compgen {manifest.compgen}: it {PURPOSE[manifest.kind]}.",
        f"## Use\n\n{USE[manifest.kind].format(name=name)}",
        f"## Trained on\n\n{_bullets(manifest.trained_on)}",
        f"## Sampling\n\nAt most {manifest.max_length} tokens, the end symbol included; attends to "
        f"{manifest.prototypes} sequences; defaults: `{json.dumps(manifest.sampling)}`. A sample is a function of "
        "this bundle, a seed and an index: same request, same samples, in any runtime, batch size and order.",
        *([_approximation(manifest.approximation)] if manifest.approximation else []),
        f"## Files\n\n{_files(manifest)}\n\nInputs and outputs of each graph are in `manifest.json`.",
        f"## Parity\n\nSequences compared with {manifest.against}. A difference is explained when its first draw lies "
        f"within 1e-5 of a boundary between two tokens, where rounding decides.\n\n{_parity(manifest.parity)}",
        "## Limits\n\nWhat it writes follows its training data, with their errors and biases. A sample is not checked "
        "for truth; filter (`--filter novel,unique`) and look at some before training on them.",
    ]
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


def _approximation(measured: Approximation) -> str:
    return (
        f"## Approximate\n\nLarge weight matrices are 8-bit integers, for speed: this is another sampler than its "
        f"checkpoint, and not to be compared with it sample by sample. Measured at export: {measured.sentence()}."
    )


def _bullets(values: dict[str, object]) -> str:
    return "\n".join(f"- {key.replace('_', ' ')}: {value}" for key, value in values.items()) or "- not recorded"


def _files(manifest: Manifest) -> str:
    lines = ["| file | bytes | what |", "| --- | ---: | --- |"]
    lines += [f"| {name} | {entry.size:,} | {FILES.get(name, '')} |" for name, entry in sorted(manifest.files.items())]
    return "\n".join(lines)


def _parity(rows: list[Parity]) -> str:
    lines = ["| runtime | dtype | batch | samples | tokens | differing | explained | largest distance |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        cells = (f"{row.batch:,}", f"{row.samples:,}", f"{row.tokens:,}", row.differing, row.explained)
        lines.append(f"| {row.runtime} | {row.dtype} | {' | '.join(map(str, cells))} | {row.largest:.1e} |")
    return "\n".join(lines)

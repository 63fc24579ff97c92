"""The model card of a bundle: `README.md`, written from its manifest alone."""

import json
from collections.abc import Iterable

from compgen.runtime.manifest import Manifest

PURPOSE = {
    "generator": "makes new training examples (source and target) from those it was trained on",
    "predictor": "predicts the target of a source",
}
USE = {
    "generator": """    cgen sample exported/{name} -n 100 --seed 1 -o samples.jsonl

or in Python

    import compgen
    samples = compgen.Generator.load("exported/{name}").sample(100, seed=1)
""",
    "predictor": """    cgen evaluate exported/{name} DATA

or in Python

    import compgen
    targets = compgen.Predictor.load("exported/{name}").predict([["some", "source"]])
""",
}
FILES = {
    "encoder.onnx": "encoder: tokens to keys and values of attention",
    "start.onnx": "last encoder states to the decoder's first state",
    "step.onnx": "one decoding step with explicit state, for continuous batching and beam search",
    "step.safetensors": "the step's weights by name, for the C++ runner, which has the step in its own code",
    "sampler.onnx": "encoder and sampling loop in one graph",
    "sampler.ts": "the same in TorchScript: methods encode, start, step, and the loop as forward",
    "golden.json": "draws, or answers, that every runtime must reproduce: `cgen verify` checks them",
    "vocabulary.json": "tokens in the order of their ids",
    "pool.safetensors": "prototypes, and which of them go together",
    "rules.txt": "the grammar, one rule per line",
    "targets.cfg": "the grammar of well-formed targets; empty if there is none",
    "scores.safetensors": "the scores of rules by slot",
}


def card(manifest: Manifest, name: str) -> str:
    """Describe a bundle in Markdown: what it is, its use, its training data and its limits."""
    trained_on = "\n".join(f"- {key.replace('_', ' ')}: {value}" for key, value in manifest.trained_on.items())
    files = [(file, f"{entry.size:,}", FILES.get(file, "")) for file, entry in sorted(manifest.files.items())]
    parity = []
    for row in manifest.parity:
        counts = (f"{count:,}" for count in (row.batch, row.samples, row.tokens, row.differing, row.explained))
        parity.append([row.runtime, row.dtype, *counts, f"{row.largest:.1e}"])
    columns = ["runtime", "dtype", "batch", "samples", "tokens", "differing", "explained", "largest distance"]
    approximate = (
        "## Approximate\n\nLarge weight matrices are 8-bit integers, for speed: this is another model than its "
        "checkpoint, and not to be compared with it one by one. Measured at export: "
    )
    sections = [
        f"# {name}\n\nA {manifest.kind} made by compgen {manifest.compgen}: it {PURPOSE[manifest.kind]}.",
        f"## Use\n\n{USE[manifest.kind].format(name=name)}",
        f"## Trained on\n\n{trained_on or '- not recorded'}",
        f"## Sampling\n\nAt most {manifest.max_length} tokens, with the end symbol; attends to "
        f"{manifest.prototypes} sequences; defaults: `{json.dumps(manifest.sampling)}`. A sample is a function of "
        "this bundle, a seed and an index: same request, same samples, in any runtime, batch size and order.",
        *([f"{approximate}{manifest.approximation.sentence(manifest.kind)}."] if manifest.approximation else []),
        f"## Files\n\n{_table(['file', 'bytes', 'what'], '-r-', files)}\n\n"
        "Inputs and outputs of each graph are in `manifest.json`.",
        f"## Parity\n\nSequences compared with {manifest.against}. A difference is explained when its first draw lies "
        "within 1e-5 of a boundary between two tokens, where rounding decides.\n\n"
        + _table(columns, "--rrrrrr", parity),
        "## Limits\n\nSamples follow the training data, with their errors and biases. A sample is not checked for "
        "truth; filter (`--filter novel,unique`) and look at some before training on them.",
    ]
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


def _table(columns: list[str], aligned: str, rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; `r` aligns a column to the right."""
    rules = ["---:" if side == "r" else "---" for side in aligned]
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rules, *rows))

"""The model card of a bundle: `README.md`, written from its manifest alone."""

import json
from collections.abc import Iterable

from compgen.data.unimorph import ANALYSIS, INFLECTION, WORDS
from compgen.runtime.manifest import POOL, Manifest

PURPOSE = {
    "generator": "makes new training examples (source and target) from those it was trained on",
    "predictor": "predicts the target of a source",
}
USE = {  # FOLDER: a bundle can be moved, and does not say where it was made
    "generator": """FOLDER is the path of this folder.

    cgen sample FOLDER -n 100 --seed 1 -o samples.jsonl

or in Python

    import compgen
    samples = compgen.Generator.load("FOLDER").sample(100, seed=1)
""",
    "predictor": """FOLDER is the path of this folder.

    cgen predict FOLDER SOURCES -o answers.txt
    cgen evaluate FOLDER DATA

or in Python

    import compgen
    targets = compgen.predict("FOLDER", ["a source , its tokens with spaces between them"])

{sources} `vocabulary.json` lists the tokens that it knows; others are named in a warning.
""",
}
SOURCES = {  # by what was learnt of words
    "": "A line of SOURCES, a file, is a source, with spaces between tokens: divide it as the training data were.",
    INFLECTION: "A line of SOURCES, a file, is lemma TAB tags; in Python letters and tags are the tokens.",
    ANALYSIS: "A line of SOURCES, a file, is a form as it is written; in Python letters are the tokens.",
}
SAMPLING = {
    "generator": "; defaults: `{defaults}`. A sample is a function of this bundle, a seed and an index: same request, "
    "same samples, in any runtime, batch size and order.",
    "predictor": ". An answer is the most probable token at each step, or what beam search finds (`cgen predict "
    "--beam`), and depends on runtime, batch size and order only where rounding decides.",
}
LIMITS = {
    "generator": "Samples follow the training data, with their errors and biases. A sample is not checked for truth; "
    "filter (`--filter novel,unique`) and look at some before training on them.",
    "predictor": "Answers follow the training data, with their errors and biases, and no answer is checked: how many "
    "are right on data that it has not seen, `cgen evaluate` measures.",
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
    "pool.safetensors": "the training examples, and which of them go together as prototypes",
    "rules.txt": "the grammar, one rule per line",
    "targets.cfg": "the grammar of well-formed targets; empty if there is none",
    "scores.safetensors": "the scores of rules by slot",
}


def card(manifest: Manifest, name: str) -> str:
    """Describe a bundle in Markdown: what it is, its use, its training data and its limits."""
    known = {key.replace("_", " "): value for key, value in manifest.trained_on.items() if value not in ("", None)}
    trained_on = "\n".join(f"- {key}: {value}" for key, value in known.items())
    sources = SOURCES.get(manifest.trained_on.get(WORDS, ""), SOURCES[""])
    defaults = json.dumps(manifest.sampling)
    what, memories = FILES, f"; attends to {manifest.prototypes} sequence{'s' * (manifest.prototypes != 1)}"
    if not manifest.prototypes:
        what, memories = FILES | {POOL: "the training examples, to tell which samples are new"}, ""
    files = [(file, f"{entry.size:,}", what.get(file, "")) for file, entry in sorted(manifest.files.items())]
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
        f"## Use\n\n{USE[manifest.kind].format(sources=sources)}",
        f"## Trained on\n\n{trained_on or '- not recorded'}",
        f"## {'Sampling' if manifest.kind == 'generator' else 'Answers'}\n\nAt most {manifest.max_length} tokens, with "
        f"the end symbol{memories}{SAMPLING[manifest.kind].format(defaults=defaults)}",
        *([f"{approximate}{manifest.approximation.sentence(manifest.kind)}."] if manifest.approximation else []),
        f"## Files\n\n{_table(['file', 'bytes', 'what'], '-r-', files)}"
        + "\n\nInputs and outputs of each graph are in `manifest.json`." * bool(manifest.graphs),
        f"## Parity\n\nSequences compared with {manifest.against}. A difference is explained when its first draw lies "
        "within 1e-5 of a boundary between two tokens, where rounding decides.\n\n"
        + _table(columns, "--rrrrrr", parity),
        f"## Limits\n\n{LIMITS[manifest.kind]}",
    ]
    return "\n\n".join(section.rstrip() for section in sections) + "\n"


def _table(columns: list[str], aligned: str, rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; `r` aligns a column to the right."""
    rules = ["---:" if side == "r" else "---" for side in aligned]
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rules, *rows))

"""The bundle of a grammar: rules as text, scores as arrays. numpy draws from it, as from the grammar file."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.numpy import save

from compgen.csl.grammar_file import GrammarFile
from compgen.errors import BundleError
from compgen.export.assemble import write_manifest
from compgen.export.bundle_writer import Options
from compgen.export.golden_draws import draws_of_grammar, write_golden
from compgen.export.verify import counts, require
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import POOL, RULES, SCORES, TARGET_RULES, Manifest, Parity
from compgen.trained.architectures import GeneratorModel, Request, Runtime
from compgen.trained.grammar import ARCHITECTURE, GrammarGenerator


def write_bundle(saved: GrammarFile, folder: Path, options: Options) -> Manifest:
    """Write a verified bundle but for its card; see `bundle_writer.export`. Return its manifest."""
    if options.int8 or options.torchscript:
        raise BundleError("a grammar is exported as rules and arrays: leave out int8 and torchscript")
    bundle = assemble(saved, folder)
    model = ARCHITECTURE.open_bundle(bundle, Runtime())
    parity = verify(GrammarGenerator(saved.trained, saved.vocabulary, saved.pool), model, options.batches)
    write_golden(folder, draws_of_grammar(model))
    return bundle.manifest.model_copy(update={"parity": parity})


def assemble(saved: GrammarFile, folder: Path) -> Bundle:
    """Write rules, scores, vocabulary and training examples; return the bundle, without its parity yet."""
    trained = saved.trained
    (slots, states), rules = trained.scores.slots.shape, trained.scores.rules.shape[1]
    (folder / RULES).write_text(trained.grammar.text(), "utf-8")
    (folder / TARGET_RULES).write_text(trained.target_rules, "utf-8")
    (folder / SCORES).write_bytes(save({"slots": trained.scores.slots, "rules": trained.scores.rules}))
    (folder / POOL).write_bytes(save(saved.pool.arrays))
    return write_manifest(
        saved,
        folder,
        config={"network": {"slots": slots, "states": states, "rules": rules}},
        prototypes=0,
        max_length=trained.max_length,
        sampling=trained.settings,
        graphs={},
    )


def verify(own: GeneratorModel, exported: GeneratorModel, batches: Mapping[int, int]) -> list[Parity]:
    """Compare samples of the bundle, in batches of several sizes, with those of the grammar; none may differ.

    Raises:
        BundleError: one does.
    """

    def tokens(model: GeneratorModel, samples: int, batch: int) -> list[tuple[int, ...]]:
        return [draw.tokens for draw in model.draws(Request(0, 0, samples, batch=batch))]

    expected = tokens(own, max(batches.values()), 256)
    rows = []
    for batch, samples in batches.items():
        judged = counts(expected[:samples], tokens(exported, samples, batch), lambda _: float("inf"))
        rows.append(Parity.model_validate({"runtime": "numpy", "dtype": "float64", "batch": batch} | judged))
    require(rows, "the bundle does not draw what its checkpoint does")
    return rows

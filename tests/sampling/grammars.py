"""Random small grammars, for the two programs that draw from them."""

import re

import numpy as np

from compgen.csl.grammar_file import GrammarFile
from compgen.csl.rules import Grammar
from compgen.csl.targets import TargetGrammar
from compgen.csl.trained import TrainedGrammar
from compgen.data.examples import Dataset
from compgen.errors import DataError
from compgen.export.bundle_writer import export

TOKENS = ["a", "b", "c", "d\u00e9", "##A", "zz"]
TARGETS = ["A", "B", "C", "(", ")", "\u00b7"]
NAMES = ["ROOT", "A", "B", "C"]
DATA = Dataset.from_pairs([(["a"], ["A"]), (["b", "c"], ["B", "("])])


def rules(rng):
    """Lines of rules; the first nonterminal of a source need not be NT_1, and lines may come twice."""
    lines = [f"{token}  ###\t{target}" for token, target in zip(TOKENS, TARGETS, strict=True)]
    for _ in range(rng.integers(1, 8)):
        names = [f"NT_{number}" for number in rng.permutation(12)[: rng.integers(1, 4)] + 1]
        source = rng.permutation([*names, *rng.choice(TOKENS, rng.integers(0, 3))])
        again = rng.choice(names, rng.integers(0, 2)).tolist()
        target = rng.permutation([*names, *again, *rng.choice(TARGETS, rng.integers(0, 3))])
        lines.append(f"{' '.join(source)}  ###\t{' '.join(target)}")
    return rng.permutation([*lines, lines[-1]]).tolist()


def targets(rng, rules):
    """Lines of a target grammar, by which most targets of rules are parts of well-formed ones, some in several ways."""
    sides = [re.sub(r"NT_\d+", "{}", rule.split("\t")[1]) for rule in rules if "NT_" in rule]
    while True:
        lines = [f"{name} => {token}" for name in NAMES for token in rng.choice(TARGETS, 2)]
        for _ in range(rng.integers(2, 9)):
            marked = [f"##{name}" for name in rng.choice(NAMES, rng.integers(1, 4))]
            symbols = rng.permutation([*marked, *rng.choice(TARGETS, rng.integers(0, 3))])
            lines.append(f"{rng.choice(NAMES)} => {' '.join(symbols)}")
        marked = [side.format(*(f"##{name}" for name in rng.choice(NAMES, 9))) for side in rng.choice(sides, 6)]
        lines += [f"{rng.choice(NAMES)} => {side}" for side in marked]
        if rng.random() < 0.3:
            lines.append("B => ##")
        try:
            TargetGrammar.parse(lines)
        except DataError:  # unit rules in a circle
            continue
        return ["# a comment", "", *rng.permutation(lines).tolist()]


def grammar_file(seed, named=False, **settings):
    """A grammar of random rules and scores, with a target grammar if it is `named`."""
    rng = np.random.default_rng(seed)
    lines = rules(rng)
    shape = Grammar.parse(lines).shape
    states = int(rng.integers(1, 12))
    spread = float(rng.choice([0.0, 1.0, 8.0]))  # of no spread, all rules are alike
    scores = {"slots": spread * rng.normal(size=(shape[0], states)), "rules": rng.normal(size=(states, shape[1]))}
    least = int(rng.integers(0, 3))
    chosen = {"temperature": [1.0, 1.0], "least": least, "most": least + int(rng.integers(0, 4)), "longest": 40}
    chosen |= {"bias": float(rng.integers(-1, 2)), "biased": int(rng.integers(0, 3)), "unit_limit": 1, "copying": False}
    text = "\n".join(targets(rng, lines)) if named else ""
    trained = TrainedGrammar.of("\n".join(lines), text, scores, chosen | settings)
    return GrammarFile.of(trained, DATA, {"data": "made up"})


def exported_grammar(folder):
    """The bundle of such a grammar, made in a folder."""
    grammar_file(13, True).save(folder / "model.grammar")
    export(folder / "model.grammar", folder / "bundle", batches={7: 20}, quiet=True)
    return folder / "bundle"

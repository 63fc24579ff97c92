"""What substitution draws: blocks of samples, how many exchanges each has, and which of them tell of the grammar."""

from collections import Counter
from itertools import islice

import pytest

from compgen.augmenters.drawing import BLOCK
from compgen.augmenters.registry import make
from compgen.substitution.augmenter import CANDIDATES, FOLDS, Substitute
from compgen.substitution.trees import Trees
from tests.substitution.toy import dataset

RULES = """NT_1 of NT_2 ### NT_1 ( NT_2 )
rivers in NT_1 ### river ( loc ( NT_1 ) )
largest ### largest
number ### count
ohio ### ohio
utah ### utah
"""
LINES = (
    "largest of rivers in ohio -> largest ( river ( loc ( ohio ) ) )",
    "number of rivers in utah -> count ( river ( loc ( utah ) ) )",
    "number of rivers in ohio -> count ( river ( loc ( ohio ) ) )",
)


@pytest.fixture
def grammar(tmp_path):
    path = tmp_path / "grammar.rules"
    path.write_text(RULES)
    return str(path)


def exchanges(grammar, *lines, **options):
    options = {"classes": "one"} | options
    return make("substitute", grammar=grammar, **options).fit(dataset(*(lines or LINES))).exchanges


@pytest.mark.parametrize("rounds", [3, 20])
def test_a_block_has_as_many_samples_whatever_the_rounds(grammar, rounds):
    for block in islice(exchanges(grammar, rounds=rounds)._blocks(0, rounds), 2):
        assert sum(len(rows) for rows, _, _ in block) == BLOCK


def test_a_sample_has_up_to_so_many_exchanges_each_number_alike(grammar):
    block = next(exchanges(grammar, rounds=4)._blocks(0, 4))
    counts = {pieces.shape[1]: len(rows) for rows, _, pieces in block}
    assert sorted(counts) == [1, 2, 3, 4] and min(counts.values()) > 0.9 * BLOCK / 4
    twice = next(pieces for _, _, pieces in block if pieces.shape[1] == 2)
    assert (twice[:, 0] != twice[:, 1]).mean() > 0.5  # each has numbers of its own


def test_hosts_are_rows_of_the_data_and_a_sample_that_is_made_again_is_not_left_out(grammar):
    found = exchanges(grammar, LINES[0], *LINES, rounds=2)
    assert {int(row) for rows, _, _ in next(found._blocks(0, 2)) for row in rows} == {0, 2, 3}
    assert found.found(None, 0) and "the source was made with another target before" not in found.left_out


def test_agreement_is_of_single_exchanges_whatever_the_rounds(grammar):
    found = [exchanges(grammar, rounds=rounds).outcomes(0) for rounds in (1, 2, 20)]
    assert found[0] and found[0] == found[1] == found[2]


def test_a_host_is_no_other_example(grammar):
    assert not exchanges(grammar, LINES[0], agreement=0).outcomes(0)


def test_one_shape_is_drawn_as_often_as_another(grammar):
    """Four words and one phrase may stand in each place: the phrase is first with half of the seeds, not a fifth."""
    found = exchanges(grammar, *LINES[:2], agreement=0)
    nodes = found.table.trees.size
    first = Counter()
    for seed in range(100):
        _, _, pieces = next(found._blocks(seed, 1))[0]
        piece = found.table.pieces.row(int(pieces[0, 0]), named=True)
        first[int(nodes[found.table.trees.start[piece["tree"]] + piece["node"]])] += piece["node"] > 0
    assert first[2] > 0.4 * first.total()


def test_samples_that_double_with_each_exchange_are_left_out_before_they_are_written(tmp_path, monkeypatch):
    path = tmp_path / "twice.rules"
    path.write_text("NT_1 twice ### NT_1 NT_1\nwalk ### W\nrun ### R\n")
    lines = "walk -> W", "run twice -> R R", "run twice twice -> R R R R"
    found = exchanges(str(path), *lines, chains="insert", rounds=20, longest=16, agreement=0)
    written = Trees.write
    sizes = []

    def counted(trees, *sides):
        sizes.append(trees.lengths(*sides).max(initial=0))
        return written(trees, *sides)

    monkeypatch.setattr(Trees, "write", counted)
    made = found.found(None, 0)
    assert sorted({len(target) for target, *_ in made.values()}) == [8, 16] and max(sizes) == 16
    assert found.left_out["more than 16 tokens on a side"] > BLOCK


def test_a_source_of_the_data_may_have_several_targets(tmp_path):
    """Both are right: neither is a disagreement, nor new."""
    lines = [*LINES, *(line.replace("( ohio )", "( utah )") for line in LINES if "ohio" in line)]
    rules = tmp_path / "two.rules"
    rules.write_text(RULES + "ohio ### utah\n")
    found = make("substitute", grammar=str(rules), classes="slot").fit(dataset(*lines))
    assert found.agreement.kept[0] == found.agreement.kept[1] > 0
    made = {(" ".join(source), " ".join(target)) for source, target in found.sample().pairs()}
    assert made and not made & {tuple(line.split(" -> ")) for line in lines}


def test_a_token_may_be_called_root(tmp_path):
    def made(head):
        (tmp_path / head).write_text(f"a NT_1 ### {head} ( NT_1 x )\nc ### C\nd ### D\n")
        lines = (f"a c -> {head} ( C x )", f"a d -> {head} ( D x )", f"a a c -> {head} ( {head} ( C x ) x )")
        found = make("substitute", grammar=str(tmp_path / head), classes="predicate").fit(dataset(*lines)).sample()
        return {" ".join(source) for source, _ in found.pairs()}

    assert made("root") == made("goot")


@pytest.mark.parametrize(("slot", "best"), [(11, "types"), (20, "slot")])
def test_classes_must_be_ahead_by_more_than_chance(monkeypatch, slot, best):
    counts = dict.fromkeys(CANDIDATES, 0) | {"types": 10, "slot": slot}
    monkeypatch.setattr(Substitute, "_covered", lambda *_: counts)
    lines = [f"{word} -> {word.upper()} {word}" for word in "abcdefgh"]
    assert make("substitute")._best_classes(dataset(*lines), 0) == best


def test_classes_are_tried_on_templates_that_the_others_do_not_have(monkeypatch):
    tried = []
    monkeypatch.setattr(
        Substitute, "_covered", lambda _, rest, wanted, seed: tried.append((rest.pairs(), wanted)) or {}
    )
    lines = [f"{verb} {word} -> {verb.upper()} {word}" for verb in "pqrstu" for word in "abc"]
    stages = []
    make("substitute")._best_classes(dataset(*lines), 0, lambda stage, share, note: stages.append(share))
    assert stages == [held / FOLDS for held in range(FOLDS)]
    assert len(tried) == FOLDS and sum(len(wanted) for _, wanted in tried) == len(lines)
    for rest, wanted in tried:
        assert len(rest) + len(wanted) == len(lines)
        assert not {target[0] for _, target in rest} & {target[0] for _, target in wanted}


QUERIES = """what is NT_1 of NT_2 ### SELECT NT_1 IN ( NT_2 ) ;
the area ### AREA
the length ### LENGTH
"""


def queries(tmp_path, brackets="()"):
    """Exchanges of any piece for any other in queries: names come where *AREA* was."""
    rules, lines = QUERIES, []
    for place in [f"ohio{number}" for number in range(90)]:
        rules += f"{place} ### {place}\n"
        for english, query in (("the area", "AREA"), ("the length", "LENGTH")):
            lines.append(f"what is {english} of {place} -> SELECT {query} IN ( {place} ) ;")
    rules, lines = (text.replace("(", brackets[0]).replace(")", brackets[1]) for text in (rules, "\n".join(lines)))
    (tmp_path / "rules").write_text(rules)
    return exchanges(str(tmp_path / "rules"), *lines.splitlines(), agreement=0)


def targets(found):
    """The targets of what was made, as text."""
    decode = found.classifier.grammar.alphabet.decode
    return {" ".join(decode(target)) for target, *_ in found.found(None, 0).values()}


def test_what_is_frequent_but_never_together_shows_a_malformed_target(tmp_path):
    found = queries(tmp_path)
    assert not any("SELECT ohio" in target for target in targets(found))
    left_out = dict(found.left_out)
    assert left_out["tokens of the target stand together that never do in the data"] > 50
    assert targets(found) and dict(found.left_out) == left_out  # not those of the first time, too


def test_names_are_alike_so_that_new_ones_are_welcome_where_any_was(tmp_path):
    found = queries(tmp_path)
    letters = {token: found.classifier.grammar.alphabet.encode([token]) for token in ("SELECT", "AREA", "ohio1", "(")}
    outline = found._outline(letters["ohio1"], "".join(letters.values()))
    assert outline == letters["SELECT"] + letters["AREA"] + "\0" + letters["("]
    assert found._stray(letters["SELECT"], "\0") and not found._stray(letters["AREA"], letters["AREA"])  # 10 by chance
    assert not found._stray(letters["ohio1"], letters["AREA"])  # never in an outline: nothing is known of it


def test_targets_without_brackets_may_have_gaps(tmp_path):
    assert any("SELECT ohio1 IN" in target for target in targets(queries(tmp_path, brackets="xy")))


def test_sources_with_several_new_pairs_of_neighbours_are_odd(grammar):
    found = exchanges(grammar)
    encode = found.classifier.grammar.alphabet.encode
    texts = ("number of rivers in ohio", "largest in ohio", "largest in of utah", "ohio rivers of number")
    # New pairs: none; largest in; largest in, in of, of utah; ohio rivers, rivers of, of number.
    assert [found.odd([encode(text.split())]) for text in texts] == [0, 0, 1, 1]
    assert found.odd([encode(text.split()) for text in texts]) == 0.5 and found.odd([]) == 0

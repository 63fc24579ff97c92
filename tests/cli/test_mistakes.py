"""The mistakes that people make at the command line, beside those in their tables: each gets one message.

Every call ends with exit code 2 and no traceback, says what is wrong and what to do, and leaves all files as they were.
"""

import shlex
from itertools import product

import pytest

from tests.cli.shell import OLD_CLICK, said

WORDS = "gehen\tging\tV;PST\nsehen\tsah\tV;PST\nstehen\tstand\tV;PST\n"
PAIRS = "".join(f"{verb}{late}\t{verb.upper()}\n" for verb in ("walk", "run", "look") for late in ("", " now"))
MANY = [*product(("walk", "run", "look", "jump", "go"), ("left", "right", "up", "down"), ("now", "twice", "later"))]
SMALL = [f"network.{size}=4" for size in ("hidden", "encoder_hidden", "embedding", "attention", "output")]
SMALL += ["optimisation.steps=2", "optimisation.batch=4"]


def table(rows):
    return "".join(f"{' '.join(row)}\t{' '.join(row).upper()}\n" for row in rows)


FILES = {
    "pairs.tsv": PAIRS,
    "many.tsv": table(MANY),
    "many.txt": "".join(f"{' '.join(row)}\n" for row in MANY),
    "parts.tsv": "".join(
        f"{line}\t{'test' if n % 9 else 'train'}\n" for n, line in enumerate(table(MANY).splitlines())
    ),
    "words.tsv": WORDS,
    "brackets.tsv": "".join(f"a {number}\tf ( {number} )\n" for number in range(9)) + "b 1\tf ( 1\n",
    "sentences.txt": "a b c\nd e f\n",
    "empty.txt": "",
    "newlines.tsv": "\n\n",
    "header.jsonl": '{"source": ["text"], "target": ["sql"]}\n{"source": ["a", "b"], "target": ["c"]}\n',
    "some.rules": "walk ### WALK\n",
    "more.jsonl": '{"source": ["run", "now"], "target": ["RUN"]}\n',
    "capitals.tsv": "Walk now\tWALK\nRun 2 miles\tRUN\n",
    "one.csv": "walk,run\n",
    "blank.jsonl": '{"source": ["run", "now"], "target": []}\n',
    "junk.pt": "nope",
    "steps.toml": "steps = 10\n",
    "thesis/chapter.txt": "precious",
    "compared/comparison.json": '{"seeds": 9}',
    "older/compare.json": '{"version": 0}',
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with data, a generator g.pt, a predictor p.pt, an interrupted training q.pt, and what commands made."""
    pytest.importorskip("torch", reason="needs torch, the extra [train]")
    folder = tmp_path_factory.mktemp("mistakes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, content in FILES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)
        sets = [word for value in SMALL for word in ("--set", value)]
        near = ["--set", "neighborhood.cover=false", "--set", "neighborhood.delta=0.1"]
        good("train", "recombine", "pairs.tsv", "-o", "g.pt", "--config", "recombine_small", *sets, *near)
        sets = [word for value in SMALL if "output" not in value for word in ("--set", value)]
        good("train", "seq2seq", "pairs.tsv", "-o", "p.pt", *sets)
        patch.setattr("compgen.training.predictors.discard_state", lambda _: None)
        good("train", "seq2seq", "pairs.tsv", "-o", "q.pt", *sets)
        good("sample", "recomb2", "--draws", 5, "-o", "drawn.jsonl")
        good("augment", "resample", "pairs.tsv", "-n", 3, "-o", "again.jsonl")
    return folder


def good(*words):
    code, text = said(*words)
    assert code == 0, text


# What is typed, and some of what is said.
MISTAKES = [
    # Words that are misspelt or missing.
    ("pairs.tsv check", "No such command 'pairs.tsv': a file. The command comes first"),
    ("augment pairs.tsv geca -o x.tsv", "first: root augment COMMAND ..."),
    ("explain pairs.tsv geca", "first: root explain COMMAND ..."),
    ("lm sentences.txt train -o x.bin", "first: root lm COMMAND ..."),
    ("smaple recomb2 -n 1", "No such command 'smaple'. Did you mean 'sample'?"),
    ("train seqseq pairs.tsv -o x.pt", "Did you mean 'seq2seq'?"),
    ("augment gecca pairs.tsv -o x.tsv", "Did you mean 'geca'?"),
    ("data splt random pairs.tsv -o x.tsv", "Did you mean 'split'?"),
    *([] if OLD_CLICK else [("train", "seq2seq      Train a predictor")]),  # which ended with 0 before
    ("sample recomb2 --drawz 3", "No such option: --drawz"),
    ("sample recomb2 -n 1 --fliter novel", "No such option: --fliter"),
    ("data split random pairs.tsv -o x.tsv --test 3 --val 3", "No such option: --val"),
    ("sample recomb2 --output", "Option '--output' requires an argument"),
    ("train seq2seq pairs.tsv", "Missing option '--output' / '-o'"),
    ("train seq2seq -o x.pt", "Missing argument 'DATA'"),
    ("train seq2seq p.pt pairs.tsv -o x.pt", "Got unexpected extra argument"),
    ("data unmask pairs.tsv -o x.tsv", "Missing option '--masked'"),
    ("select pairs.tsv -o x.jsonl", "Missing option '-n'"),
    ("completion tcsh", "SHELL tcsh: expected bash, zsh or fish"),
    # Settings.
    ("train seq2seq pairs.tsv -o x.pt --hard", "--hard: expected --augment METHOD beside it"),
    ("train seq2seq pairs.tsv -o x.pt --augment-set rounds=2", "--augment-set: expected --augment METHOD beside it"),
    ("train seq2seq pairs.tsv -o x.pt --augment thesis", "no method 'thesis'"),
    ("train seq2seq pairs.tsv -o x.pt --augment geca --augment-set spn=2", "spn: no such setting; did you mean span"),
    ("train seq2seq pairs.tsv -o x.pt --augment resample --augmented pairs.tsv", "draws them anew"),
    ("train seq2seq pairs.tsv -o x.pt --augment lexsym --augment-set write_lexicon=pairs.tsv", "pairs.tsv"),
    ("train seq2seq pairs.tsv -o x.pt --augment lexsym --augment-set write_lexicon=x.pt", "another than OUT's"),
    ("augment substitute pairs.tsv -o x.tsv --grammar gone.rules", "gone.rules: no such file"),
    ("augment lexsym pairs.tsv -o x.tsv --lexicon pairs.tsv", "expected type, word and symbols between tabs"),
    ("augment lexsym pairs.tsv -o x.tsv --write-lexicon pairs.tsv", "pairs.tsv"),
    ("train seq2seq pairs.tsv -o x.pt --set optimization.steps=10", "optimization: no such setting; did you mean"),
    ("train seq2seq pairs.tsv -o x.pt --set steps=10", "steps: no such setting; did you mean optimisation.steps?"),
    ("augment geca pairs.tsv -o x.tsv --set foo=1", "foo: no such setting; expected one of span, spans, "),
    ("augment csl pairs.tsv -o x.tsv --set foo=1", "rules, induction.NAME, training.NAME, drawing.NAME"),
    ("augment csl pairs.tsv -o x.tsv --set drawing.foo=1", "setting; expected one of depth.NAME, longest, "),
    ("augment csl pairs.tsv -o x.tsv --set induction.partitons=1", "did you mean induction.partitions?"),
    ("augment resample pairs.tsv -o x.tsv --set foo=1", "resample: foo: no such setting\n"),
    ("train seq2seq pairs.tsv -o x.pt --set network.qqq=1", "network.qqq: no such setting; expected one of memories, "),
    ("train seq2seq pairs.tsv -o x.pt --set optimisation.step=3", "did you mean optimisation.steps?"),
    ("train seq2seq pairs.tsv -o x.pt --set optimisation.steps=many", "steps: found 'many', expected a whole number"),
    ("train seq2seq pairs.tsv -o x.pt --set optimisation.steps=0", "found 0, expected a number greater than or equal"),
    ("train seq2seq pairs.tsv -o x.pt --set optimisation.steps", "expected KEY=VALUE, for instance"),
    ("train seq2seq pairs.tsv -o x.pt --set =3", "--set =3: expected KEY=VALUE"),
    ("train seq2seq pairs.tsv -o x.pt --set optimisation=3", "found 3, expected a table of settings, for instance"),
    ("train seq2seq pairs.tsv -o x.pt --set optimisation.steps.more=3", "steps is a value, not a table"),
    ("augment geca pairs.tsv -o x.tsv --set span=1 --span 4", "--span 4 and --set span=1 give span two values: leave"),
    ("augment recombine pairs.tsv -o x.tsv --set vote=true --no-vote", "--no-vote and --set vote=true give vote two"),
    ("train csl pairs.tsv -o x.grammar --set uniform=false --uniform", "--uniform and --set uniform=false give"),
    ("train recombine pairs.tsv -o x.pt --set minutes=2 --minutes 3", "--minutes 3 and --set minutes=2 give minutes"),
    ("train seq2seq pairs.tsv -o x.pt --config seq2seq_smal", "did you mean seq2seq_small?"),
    ("train seq2seq pairs.tsv -o x.pt --config steps.toml", "network: missing, expected a setting of this name;"),
    ("train seq2seq pairs.tsv -o x.pt --config pairs.tsv", "configuration pairs.tsv: not TOML: "),
    ("train seq2seq pairs.tsv -o x.pt --config recombine_small", "recombine_small is of another command: "),
    ("train recombine pairs.tsv -o x.pt --config seq2seq_small", "one of auto, recombine_morphology, recombine_"),
    ("train recombine pairs.tsv -o x.pt --config recombine_scan --minutes 3", "minutes are for the configuration auto"),
    ("train recombine many.tsv -o x.pt --config recombine_small", "a lower neighborhood.delta, a higher"),
    ("augment recombine pairs.tsv -o x.tsv --set optimization.steps=10", "recombine: optimization: no such setting;"),
    ("augment geca pairs.tsv -o x.tsv --mode strict", "mode: found 'strict', expected 'published' or 'reference'"),
    # Models and data.
    ("sample pairs.tsv -n 1", "pairs.tsv: a file, expected a model"),
    ("sample scan/jump -n 1", "scan/jump: a data set, expected a model"),
    ("sample p.pt -n 1", "p.pt: holds a predictor, expected a generator; `cgen train recombine`"),
    ("sample thesis -n 1", "thesis: not a bundle: it has no manifest.json"),
    ("sample junk.pt -n 1", "junk.pt: not a checkpoint, or cut short; expected a file that `cgen train` wrote"),
    ("sample recomb3 -n 1", "recomb3: no such bundle; expected a bundle's folder, or the name of one"),
    ("predict g.pt sentences.txt -o x.txt", "g.pt: holds a generator, expected a predictor"),
    ("predict pairs.tsv p.pt -o x.txt", "the model comes first, then the data"),
    ("predict p.pt junk.pt -o x.txt", "junk.pt: a model, expected data"),
    ("predict gone.pt sentences.txt", "gone.pt: no such file"),
    ("predict p.pt gone.txt -o x.txt", "gone.txt: no such file"),
    ("predict thesis sentences.txt -o x.txt", "thesis: not a bundle: it has no manifest.json"),
    ("predict p.pt sentences.txt --direct -o x.txt", "p.pt: holds a predictor, expected a generator"),
    ("evaluate recomb2 scan/jump", "with --direct a generator answers by itself"),
    ("evaluate pairs.tsv p.pt", "pairs.tsv: not a model, and p.pt is one: the model comes first, then the data"),
    ("evaluate p.pt pairs.tsv --perplexity", "found a predictor, expected a generator"),
    ("train seq2seq g.pt -o x.pt", "g.pt: a model, expected data"),
    ("train seq2seq sentences.txt -o x.pt", "found sentences, expected pairs"),
    ("train seq2seq thesis -o x.pt", "thesis: a folder without Parquet files"),
    ("train seq2seq empty.txt -o x.pt", "empty.txt: no examples: the file is empty"),
    ("train seq2seq gone.tsv -o x.pt", "gone.tsv: no such file"),
    ("train seq2seq pairs.tsv -o x.pt --augmented gone.jsonl", "gone.jsonl: no such file"),
    ("train seq2seq pairs.tsv -o x.pt --augmented sentences.txt", "augmented examples: found sentences, expected"),
    ("train seq2seq pairs.tsv -o x.pt --augmented blank.jsonl", "augmented examples: found sentences, expected pairs"),
    ("train seq2seq scan/jmp -o x.pt", "expected scan/ and one of simple, jump"),
    ("train seq2seq scna/jump -o x.pt", "neither a file nor a known data set; did you mean scan/jump"),
    ("export pairs.tsv -o x", "pairs.tsv: not a checkpoint"),
    ("export gone.pt -o x", "gone.pt: no such file"),
    ("export g.pt -o thesis", "thesis: exists and is not a bundle: choose another name"),
    ("export g.pt -o -", "standard output (-) is no folder: give the name of one"),
    ("verify g.pt", "g.pt: a model that is not exported, expected a bundle: `cgen export`"),
    ("verify pairs.tsv", "pairs.tsv: a file, expected a model"),
    ("check g.pt", "g.pt: a model, expected data"),
    # Where to write.
    ("train seq2seq pairs.tsv -o x", "x: expected the name of a file that ends in .pt"),
    ("train csl pairs.tsv -o x.pt", "x.pt: expected the name of a file that ends in .grammar"),
    ("train seq2seq pairs.tsv -o pairs.tsv/x.pt", "pairs.tsv is a file, expected a folder"),
    ("sample recomb2 -n 1 -o x.parquet.gz", "(perhaps .gz) or .parquet"),
    ("sample recomb2 -n 1 --runtime native -o x.parquet", "the native runtime writes .jsonl and .tsv"),
    ("sample recomb2 -n 1 -o x.xlsx", "samples are written as .jsonl or .tsv"),
    ("sample recomb2 -n 1 -o /dev/null/x.jsonl", "/dev/null is a file, expected a folder"),
    ("sample g.pt -n 1 -o g.pt", "g.pt: it is read, too: choose another name"),
    ("predict p.pt sentences.txt -o sentences.txt", "sentences.txt: it is read, too"),
    ("predict p.pt sentences.txt -o x.csv", "predictions are written as .txt, .tsv, .jsonl, .unimorph"),
    ("evaluate p.pt pairs.tsv --predictions pairs.tsv", "pairs.tsv: it is read, too"),
    ("augment geca pairs.tsv -o pairs.tsv", "pairs.tsv: it is read, too"),
    ("augment geca pairs.tsv -o x.xls", "x.xls: found the suffix '.xls', expected one that tells the format: .tsv"),
    ("augment geca pairs.tsv -o thesis", "a folder that holds chapter.txt, expected a new or empty one"),
    ("augment geca pairs.tsv -o x --format xml", "no format 'xml': expected one of tsv, jsonl"),
    ("select again.jsonl -n 2 --by random -o again.jsonl.run.json", "are for records beside files: choose another"),
    ("augment resample pairs.tsv -n 2 -o more.jsonl.run.json", "more.jsonl.run.json: names that end in .run.json are"),
    ("data write pairs.tsv -o x.tsv --format unimorph", "unimorph holds words: example 1: found the source 'walk'"),
    ("data mask pairs.tsv -o x.tsv", "its format has no place for the names: write .jsonl"),
    ("check pairs.tsv --fix pairs.tsv", "pairs.tsv: it is read, too"),
    # Numbers, choices and splits that there are not.
    ("sample recomb2 -n 0", "Invalid value for '-n'"),
    ("sample recomb2 --draws many", "Invalid value for '--draws'"),
    ("sample recomb2 -n 1 --filter rare --rarity 2", "rarity 2.0: expected a share of the training examples"),
    ("sample recomb2 -n 1 --filter rare --ngram 0", "Invalid value for '--ngram'"),
    ("sample recomb2 -n 1 --temperature 1,2,3", "expected one or two numbers from 0 on"),
    ("sample recomb2 -n 5 --engine threadz", "--engine threadz: expected threads or ray"),
    ("train seq2seq pairs.tsv -o x.pt --split dev", "no examples in split 'dev'; available splits: train (6)"),
    ("train seq2seq pairs.tsv -o x.pt --device tpu", "no device 'tpu': expected auto, cpu or cuda"),
    ("train seq2seq pairs.tsv -o x.pt --seed -1", "Invalid value for '--seed'"),
    ("evaluate p.pt pairs.tsv --split test", "no examples in split 'test'; available splits: train (6)"),
    ("evaluate p.pt pairs.tsv --unit words", "--unit words: expected one of token, analysis"),
    ("evaluate p.pt pairs.tsv --execute sql", "no interpreter 'sql': expected one of scan"),
    ("predict p.pt sentences.txt --format xls", "--format xls: expected text, tsv, jsonl or unimorph"),
    ("augment stemcorrupt words.tsv -o x.tsv --theta 2", "Invalid value for '--theta'"),
    ("select pairs.tsv -n 99 --by random -o x.tsv", "99 examples cannot be selected of 6 candidates: ask for at most"),
    ("select pairs.tsv -n 3 --by tags -o x.tsv", "no strategy 'tags': expected one of random, umt"),
    ("data split random pairs.tsv -o x.tsv --test 100", "test 100: expected fewer than the 6 examples that there"),
    ("data split random pairs.tsv -o x.tsv --test 0", "--test 0.0: expected a number greater than 0"),
    ("data split random pairs.tsv -o x.tsv --test 1.5", "found a size of 1.5, expected a whole number of examples"),
    ("data split length pairs.tsv -o x.tsv --train 100", "found 6 examples, expected more than the 100 to train on"),
    ("data split lemma words.tsv -o x.tsv --train 100", "Invalid value for '--train'"),
    ("data split lemma words.tsv -o x.unimorph", "its format has no names of parts: write .tsv, .csv, .jsonl or"),
    (f"data split random pairs.tsv -o x.tsv --seed {2**64}", "'--seed': Input should be less than or equal to 1844"),
    (f"explain attention g.pt --index {2**61 + 1}", "Invalid value for '--index': Input should be less than or equal"),
    (f"explain attention g.pt --seed {2**64}", "Invalid value for '--seed': Input should be less than or equal to 184"),
    # Options that exclude each other, or miss each other.
    ("sample recomb2", "say how many samples to keep (-n) or how many draws to make (--draws)"),
    ("sample pairs.tsv", "pairs.tsv: a file, expected a model: a bundle's folder"),
    ("sample recomb2 -n 1 --beam 2 --temperature 1", "not both"),
    ("predict p.pt sentences.txt --best 3 --beam 2 -o x.tsv", "--best 3 needs a beam as wide: leave out --beam 2"),
    ("predict g.pt sentences.txt --direct --best 2 -o x.txt", "direct inference gives one answer, greedily"),
    ("predict p.pt sentences.txt --otherwise p.pt -o x.txt", "--otherwise answers what a generator cannot: add"),
    ("predict p.pt sentences.txt --runtime onnx -o x.txt", "a checkpoint runs in torch; export it first"),
    ("predict g.pt sentences.txt --direct --with g.pt -o x.txt", "generators do not: leave out --direct or --with"),
    ("evaluate p.pt p.pt pairs.tsv --together --direct", "generators do not: leave out --direct or --together"),
    ("evaluate p.pt pairs.tsv --together", "--together: found p.pt alone, expected two or more predictors"),
    ("evaluate p.pt p.pt pairs.tsv --predictions o.tsv", "found 2 models: name one, or add --together"),
    ("evaluate p.pt pairs.tsv --compare 1", "--compare 1 needs two or more systems"),
    ("evaluate p.pt p.pt pairs.tsv --compare 1", "p.pt twice"),
    ("select pairs.tsv -n 3 --by umt+loss -o x.tsv", "umt+loss needs a model"),
    ("select pairs.tsv -n 3 --by random --model p.pt -o x.tsv", "random uses no losses: leave out the model"),
    ("data quality - --train -", "standard input (-) can be read only once: give files"),
    ("data mask pairs.tsv -o x.jsonl --names many.txt --found x.txt", "leave out --names, which lists them"),
    ("data overlap pairs.tsv", "the split 'train' would be compared with itself: give --train, or other splits"),
    # Runs to go on with.
    ("train seq2seq pairs.tsv -o x.pt --resume", "x.pt.partial: no such file: no training was interrupted; leave out"),
    ("train seq2seq pairs.tsv -o q.pt --resume --seed 3", "q.pt.partial: saved by a training that differs: "),
    ("sample recomb2 -n 5 --resume", "--resume is for samples that are written to a file"),
    ("sample recomb2 --draws 9 -o drawn.jsonl --resume", "made with another --draws: "),
    # Methods that do not apply, and what they left.
    ("augment stemcorrupt pairs.tsv -o x.tsv", "example 1: found the source 'walk', expected the letters of a lemma"),
    ("augment stemcorrupt words.tsv -o x.tsv", "no 3 or more characters of the lemma stand together in the form: a"),
    ("augment csl sentences.txt -o x.tsv", "csl: found sentences (examples without a target), expected pairs"),
    ("augment csl pairs.tsv -o x.tsv", "every rule of the grammar is a whole example"),
    ("augment geca many.tsv -o x.tsv --longest 1", "(the shortest has 6): raise --longest"),
    ("explain geca gone.jsonl", "gone.jsonl: no such file, expected samples"),
    ("explain geca more.jsonl", "more.jsonl.run.json: no such file, expected the record that `cgen augment` and `cgen"),
    ("explain geca again.jsonl", "again.jsonl: made by resample: call `cgen explain resample`"),
    ("explain attention p.pt", "only a generator with prototypes looks at anything"),
    ("explain attention recomb2", "recomb2: no such file, expected a generator's checkpoint (.pt)"),
    ("select pairs.tsv -n 3 --by umt --template tags -o x.tsv", "give --template shape, length or template (a column)"),
    ("data stems pairs.tsv", "expected the letters of a lemma and tags"),
    ("data unmask pairs.tsv --masked pairs.tsv -o x.tsv", "pairs.tsv: found no column 'names', expected what `cgen"),
    ("data split lemma capitals.tsv -o x.tsv", "expected the letters of a lemma and tags (examples of inflection)"),
    ("predict p.pt one.csv", "one.csv: no examples: found one line, which is read as the names of the columns"),
    ("data split lemma pairs.tsv -o x.tsv", "found the source 'walk', expected the letters of a lemma and tags"),
    ("data split tmcd brackets.tsv -o x.tsv", "open brackets at the end: 1, expected a closing one for each"),
    ("data split tmcd pairs.tsv -o x.tsv --test 2", "fewer test examples, or a smaller number (--least of `cgen data"),
    ("data quality more.jsonl --train pairs.tsv -n 50 --strict", "--strict: 2 warnings above: more.jsonl is not as it"),
    ("evaluate p.pt sentences.txt", "found an example without a target, expected targets to score by"),
    # An option that takes one value.
    ("data write pairs.tsv -o x.tsv --output y.tsv", "--output: given 2 times, expected once"),
    ("evaluate p.pt parts.tsv --split dev --split test", "--split: given 2 times, expected once"),
    ("lm train sentences.txt -o x.bin --order 2 --order 3", "--order: given 2 times, expected once"),
    ("train seq2seq pairs.tsv -o x.pt --seed 1 --seed 1 --seed 1", "--seed: given 3 times, expected once"),
    # Comparisons.
    ("compare pairs.tsv -o x", "found 6 examples, expected more than the 20 to test on: give more examples"),
    ("compare pairs.tsv -o x --test 100", "give more examples, or a smaller --test"),
    ("compare parts.tsv -o x", "to train on, expected"),
    ("compare many.txt -o x", "found sentences, expected pairs"),
    ("compare many.tsv -o x --methods gecca", "no method 'gecca': expected one of recombine, geca"),
    ("compare many.tsv -o x --methods resample", "this is the control, and always there: leave it out"),
    ("compare many.tsv -o x --methods stemcorrupt", "--methods stemcorrupt: it does not apply: takes words"),
    ("compare many.tsv -o x --predictor lstm", "no predictor 'lstm': expected seq2seq, transformer, or the folder of"),
    ("compare many.tsv -o x --predictor thesis", "no predictor 'thesis'"),
    ("compare many.tsv -o thesis", "thesis: expected a new or empty folder, or one of the same comparison"),
    ("compare many.tsv -o compared", "compared: holds another comparison (the data differ; methods"),
    ("compare many.tsv -o many.tsv", "many.tsv is a file, expected a folder"),
    ("compare many.tsv -o x --by chance", "--by chance: expected template, length, tmcd or random"),
    ("compare many.tsv -o x --minutes 0", "--minutes 0.0: expected a number greater than 0"),
    ("report thesis", "thesis/compare.json: no such file, expected the folder that `cgen compare` writes"),
    ("report older", "older/compare.json: version 0"),
    # Language models.
    ("lm train sentences.txt -o sentences.txt", "sentences.txt: it is read, too"),
    ("data split random pairs.tsv --train inf -o x.tsv", "train inf: expected a number of examples, or"),
    ("data show newlines.tsv --source a", "no examples: the file is empty"),
    ("data quality pairs.tsv --train sentences.txt", "pairs cannot be measured against sentences"),
    ("data mask pairs.tsv --names sentences.txt --most 0.1 -o x.jsonl", "--most is for names that are found"),
    ("data write header.jsonl -o x.tsv", "text TAB sql, would be read as names of columns; write jsonl instead"),
    ("augment lexsym pairs.tsv --mode paper --agreement 1 -o x.tsv", "--agreement is of types"),
    ("augment csl pairs.tsv --seed-rules thesis -o x.tsv", "thesis: a folder, expected a file"),
    ("train csl pairs.tsv --seed-rules some.rules --rules some.rules -o x.grammar", "some.rules: it is read, too"),
    ("evaluate p.pt pairs.tsv --predictions x.unimorph", "exact match"),  # the scores, and then what is wrong
    ("evaluate p.pt g.pt more.jsonl --compare 1", "--compare needs two test examples or more, found 1"),
    ("lm train - - -o x.bin", "standard input (-) can be read only once"),
    ("lm perplexity x.bin - -", "standard input (-) can be read only once"),
    ("lm train sentences.txt -o x.bin --order 1", "Invalid value for '--order'"),
    ("lm train sentences.txt -o x.bin --prune a", "--prune a: expected counts between commas, for instance 0,0,1"),
    ("lm perplexity gone.bin sentences.txt", "gone.bin: no such file, expected a language model or a mixture"),
    ("lm rescore gone.bin sentences.txt", "gone.bin: no such file, expected a language model or a mixture"),
    ("lm interpolate a.bin --validation sentences.txt -o x.json", "interpolation takes two models or more"),
    ("lm augment many.txt --validation many.txt --test many.txt -o x --seeds 1,1", "expected different numbers"),
]  # fmt: skip


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(("line", "says"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_told_and_changes_nothing(workplace, monkeypatch, line, says):
    monkeypatch.chdir(workplace)
    before = contents(workplace)
    code, text = said(*shlex.split(line))
    assert says in text, text
    assert code == 2
    assert contents(workplace) == before


@pytest.mark.parametrize(
    "line", ["train sentences.txt -o x.bin", "perplexity sentences.txt sentences.txt", "rescore sentences.txt -"]
)
def test_commands_without_the_programs_of_kenlm_say_how_to_get_them(workplace, monkeypatch, line):
    monkeypatch.chdir(workplace)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("COMPGEN_KENLM", raising=False)
    monkeypatch.setattr("sys.executable", str(workplace / "python"))
    before = contents(workplace)
    code, text = said("lm", *shlex.split(line))
    assert code == 2 and "`cgen lm install` builds it, once" in text
    assert contents(workplace) == before


@pytest.mark.usefixtures("kenlm")
def test_an_empty_text_makes_no_language_model(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    code, text = said("lm", "train", "empty.txt", "-o", "x.bin")
    assert code == 2 and "empty.txt: found no word" in text and not (workplace / "x.bin").exists()

"""Gives Python's readers damaged inputs, in one process: each must take them, or refuse them in one line.

    python scripts/fuzz_readers.py --inputs 1000
    python scripts/fuzz_readers.py --of toml,bundle --inputs 100000 --seed 3 --keep build/faults

An input is changed once or a few times, in ways that keep its form: values of JSON, headers of arrays, fields of
graphs, words of lines, what gzip has packed; seals are mended. One that is refused at a new place, or taken on a new
way, is changed further. A reader fails by another exception than a UserError, a message of several lines, ten seconds,
or a gigabyte. What is found goes to tests/found/READER, which the tests read again.
"""

import argparse
import collections
import contextlib
import faulthandler
import gzip
import io
import json
import random
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' small models

from mutate import damaged_arrays, damaged_bytes, damaged_graph, damaged_json, damaged_text, memory
from mutate_readers import damaged_lines, packed

from compgen.errors import UserError

LONGEST, MEMORY = 10.0, 2**30  # seconds and bytes for an input
HANG = 60  # seconds after which the process says where it is, and ends
MOST, CORPUS = 20_000, 4_000  # bytes of an input that is changed further; inputs
Change = Callable[[bytes, random.Random], bytes]
TABLES = {
    "tsv": b"a b\tx y\ntrain\n",
    "jsonl": b'{"source": ["a", "b"], "target": "x y", "split": "test", "n": 3}\n{"source": "c", "target": ["z"]}\n',
    "scan": b"IN: jump twice OUT: I_JUMP I_JUMP\nIN: walk OUT: I_WALK\n",
    "txt": b"the cat sat\na dog\n",
    "csv": b'source,target,split\n"a, b",x,train\nc;d,"y ""z""",test\n',
    "json": b'[{"source": "a b", "target": "x", "m": {"k": [1]}},\n {"source": ["c"], "target": ["y"]}]\n',
    "unimorph": "gehen\tging\tV;PST;1;SG\nHaus\tHäuser\tN;NOM;PL\n".encode(),
    "parquet": b"",  # made below
}
CONFIGURATION = b"""base = "recombine_small"
max_tokens = 9
[network]
feed_dropout = 0.5
[optimisation]
batch = 16
"""
TARGETS = b"ROOT => ##A b ##A\nROOT => ##A\nA => a ##A\nA => ##\n# a comment\n"
RULES = b"NT_2 a NT_1 ### NT_1 b NT_2 NT_1\na ### b\nc d ### b b\n"
LEXICON = b"type\tword\tsymbol\nverb\tjump\tI_JUMP\nverb\twalk\tI_WALK\n-\ttwice\tX\tY Z\n"
SQL = json.dumps(
    [
        {
            "sql": ['SELECT A FROM B WHERE C = "name0" ;'],
            "query-split": "train",
            "sentences": [{"text": "what is name0", "question-split": "3", "variables": {"name0": "new york"}}],
        }
    ]
).encode()
PLAN = b'{"source": "Add lunch at 1.5", "target": "Yield ( Number 1.5 )"}\n'
FORMS = b"A cat slept .\tcat ( x _ 1 ) AND sleep . agent ( x _ 2 , x _ 1 )\tin_distribution\n"


@dataclass(frozen=True)
class Reader:
    """What reads a file, of some suffix; valid content, and ways to change it."""

    suffix: str
    read: Callable[[Path], object]
    seeds: tuple[bytes, ...]
    changes: tuple[Change, ...]


# Changes.


def packed_change(change: Change) -> Change:
    """Change what gzip has packed; now and then the packed bytes."""

    def changed(data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.3:
            return damaged_bytes(data, rng)
        try:
            content = gzip.decompress(data)
        except Exception:  # of gzip or zlib: it is damaged
            content = b"a\tb\n"
        return packed(change(content[:MOST], rng), rng)

    return changed


def damaged_numbers(data: bytes, rng: random.Random) -> bytes:
    """One of the numbers in a text replaced."""
    places = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not places:
        return damaged_bytes(data, rng)
    place = rng.choice(places)
    odd = rng.choice(("0", "-1", "nan", "inf", "1e400", "1_0", "0x1", "9" * 5000, "9223372036854775808", "1.5", '""'))
    return data[: place.start()] + odd.encode() + data[place.end() :]


def damaged_json_lines(data: bytes, rng: random.Random) -> bytes:
    """One line of JSON changed."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = damaged_json(lines[at], rng)
    return b"\n".join(lines)


def nested(data: bytes, rng: random.Random) -> bytes:
    """Brackets within one another, thousands deep, at some place."""
    at, depth = rng.randrange(len(data) + 1), rng.choice((70, 1200, 9000))
    one, other = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"[a.", b"]"), (b"(", b")"), (b"{a=", b"}")))
    return data[:at] + one * depth + (other * depth if rng.random() < 0.5 else b"") + data[at:]


def changed(data: bytes, changes: tuple[Change, ...], rng: random.Random) -> bytes:
    """Change an input once, or some times."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        change = damaged_bytes if rng.random() < 0.1 else rng.choice(changes)
        try:
            data = change(data, rng)
        except Exception:  # of whatever it takes for granted
            data = damaged_bytes(data, rng)  # it has lost its form
    return data


# Readers.


def table_readers() -> dict[str, Reader]:
    """Those of tables, in all formats, as data, as sources, and as `cgen check` reads them."""
    import polars as pl

    from compgen.data.examples import Dataset
    from compgen.data.formats import read_dataset
    from compgen.data.lenient import read_table
    from compgen.data.named import USUALLY
    from compgen.data.sources import read_sources

    stream = io.BytesIO()
    pl.DataFrame({"source": [["a", "b"], ["c"]], "target": [["x"], ["y"]], "split": ["train", "test"]}).write_parquet(
        stream
    )
    seeds = TABLES | {"parquet": stream.getvalue(), "tsv": b"a b\tx y\ttest\nc\tz\n"}
    own: dict[str, tuple[Change, ...]] = {"jsonl": (damaged_json_lines, nested), "json": (damaged_json, nested)}

    def read(path: Path) -> Dataset:
        return read_dataset(path)

    found = {}
    for format_, seed in seeds.items():
        changes = (*own.get(format_, ()), damaged_lines, damaged_text, damaged_numbers)
        if format_ == "parquet":
            changes = (damaged_bytes, damaged_tail)
        suffix = f".{format_}"
        found[f"table {format_}"] = Reader(suffix, read, (seed,), changes)
        found[f"check {format_}"] = Reader(suffix, lambda path: read_table(str(path), USUALLY), (seed,), changes)
        if format_ in ("tsv", "jsonl", "txt", "unimorph", "csv"):
            found[f"sources {format_}"] = Reader(suffix, lambda path: [*read_sources(str(path))], (seed,), changes)
        if format_ in ("tsv", "jsonl", "csv"):
            pair = (packed_change(changes[0]), packed_change(damaged_lines))
            found[f"table {format_}.gz"] = Reader(f"{suffix}.gz", read, (gzip.compress(seed, mtime=0),), pair)
    return found


def damaged_tail(data: bytes, rng: random.Random) -> bytes:
    """A byte of Parquet's last ones, which describe the rest."""
    at = len(data) - 1 - rng.randrange(min(len(data), 700))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def text_readers(work: Path) -> dict[str, Reader]:
    """Those of configurations, rules, lexicons, names, records and published data."""
    from compgen.comparison import report
    from compgen.configuration import load_config
    from compgen.csl.rules import Grammar
    from compgen.csl.targets import TargetGrammar
    from compgen.data import cogs, placeholders, smcalflow, text2sql
    from compgen.lexsym import lexicon
    from compgen.lm.mixture import Mixture
    from compgen.recombine.config import RecombineConfig
    from compgen.runtime.manifest import strict_json
    from tests.comparison.made_up import result

    lines = (damaged_text, damaged_lines)
    mixture = {"format": "compgen mixture of n-gram models 1", "models": [".", ".."], "weights": [[0.25, 0.75]]}

    def read_json(path: Path) -> object:
        try:
            return strict_json(path.read_bytes())
        except ValueError as error:
            raise UserError(" ".join(str(error).split())) from error

    def read_queries(path: Path) -> object:
        return text2sql.read(path, "query"), text2sql.read(path, "question")

    def read_report(path: Path) -> object:
        path.rename(work / report.RESULT)
        return report.read(work)

    compared = result().model_dump_json().encode()
    return {
        "toml": Reader(
            ".toml",
            lambda path: load_config(RecombineConfig, str(path)),
            (CONFIGURATION, b'base = "recombine_scan"\n'),
            (*lines, damaged_numbers, nested),
        ),
        "rules": Reader(".rules", Grammar.read, (RULES,), lines),
        "targets": Reader(".cfg", TargetGrammar.read, (TARGETS,), lines),
        "lexicon": Reader(".tsv", lexicon.read, (LEXICON,), lines),
        "names": Reader(".txt", placeholders.read_names, (b"new york\tcity\nann\n",), lines),
        "json": Reader(".json", read_json, (SQL, b'{"a": [1, 2.5, true, null, "\\u00e9"]}'), (damaged_json, nested)),
        "mixture": Reader(".json", Mixture.open, (json.dumps(mixture).encode(),), (damaged_json, nested)),
        "report": Reader(".json", read_report, (compared,), (damaged_json, nested)),
        "sql": Reader(".json", read_queries, (SQL,), (damaged_json,)),
        "plans": Reader(".jsonl", lambda path: smcalflow.read({"train": path}), (PLAN,), (damaged_json_lines, nested)),
        "cogs": Reader(".tsv", lambda path: cogs.read({"train": path}, "lf"), (FORMS,), lines),
    }


def model_readers(work: Path) -> dict[str, Reader]:
    """Those of bundles, checkpoints, grammar files, and of what interrupted work leaves."""
    from compgen.runtime.bundle import arrays_of
    from compgen.runtime.sealed import require_sealed

    found = {
        "bundle": bundle_reader(work),
        "checkpoint": checkpoint_reader(work),
        "grammar": grammar_reader(work),
        "run": run_reader(work),
        "job": job_reader(work),
    }
    bundles = found["bundle"].seeds
    graphs = [data for bundle in bundles for name, data in _parts(bundle) if name.endswith(".onnx")]
    arrays = [data for bundle in bundles for name, data in _parts(bundle) if name.endswith(".safetensors")]
    found["graph"] = Reader(
        ".onnx", lambda path: require_sealed("graph", path.read_bytes()), tuple(graphs[:4]), (damaged_graph,)
    )
    found["arrays"] = Reader(
        ".safetensors", lambda path: arrays_of(path, path.read_bytes()), tuple(arrays[:4]), (damaged_arrays,)
    )
    return found


def _parts(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of an input that is several: names and sizes in a line of JSON, then contents."""
    head, _, rest = data.partition(b"\n")
    try:
        for name, size in json.loads(head):
            yield str(name), rest[: int(size)]
            rest = rest[int(size) :]
    except (ValueError, TypeError):
        return


def _whole(files: list[tuple[str, bytes]]) -> bytes:
    return json.dumps([(name, len(data)) for name, data in files]).encode() + b"\n" + b"".join(d for _, d in files)


def damaged_parts(data: bytes, rng: random.Random) -> bytes:
    """One of the files of an input changed, by its kind; the first one most often."""
    files = list(_parts(data))
    at = rng.randrange(len(files)) if rng.random() < 0.6 else 0
    name, content = files[at]
    kinds = {".json": damaged_json, ".safetensors": damaged_arrays, ".onnx": damaged_graph, ".partial": damaged_lines}
    files[at] = name, kinds.get(Path(name).suffix, damaged_text)(content, rng)
    return _whole(files)


def bundle_reader(work: Path) -> Reader:
    """Of small bundles whose graphs are empty; hashes and sizes in the manifest are mended."""
    import hashlib

    from compgen.csl.trained import TrainedGrammar
    from compgen.runtime.bundle import Bundle, arrays_of
    from compgen.runtime.golden import golden_of
    from tests.export.tiny import exported
    from tests.sampling.grammars import exported_grammar

    made = [exported("generator", hidden=4, encoder_hidden=3, embedding=3, output=3, attention=2, positions=2)]
    made += [exported("predictor", initial="encoder", hidden=4), exported_grammar(work)]
    seeds = []
    for bundle in made:
        names = sorted((path.name for path in bundle.iterdir()), key=lambda name: name != "manifest.json")
        files = [(name, b"" if name.endswith(".md") else (bundle / name).read_bytes()) for name in names]
        seeds.append(_whole([(name, b"\x08\x0a" if name.endswith(".onnx") else data) for name, data in files]))
    folder = work / "opened"
    folder.mkdir()

    def read(path: Path) -> object:
        files = dict(_parts(path.read_bytes()))
        files = {name: data for name, data in files.items() if re.fullmatch(r"[\w.-]{1,40}", name)}
        for old in folder.iterdir():
            old.unlink()
        manifest = files.pop("manifest.json", b"{}")
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            content = json.loads(manifest)
            for name, data in files.items():
                content["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            manifest = json.dumps(content).encode()
        for name, data in {"manifest.json": manifest, **files}.items():
            (folder / name).write_bytes(data)
        bundle = Bundle.load(folder)
        if bundle.manifest.architecture == "grammar":
            scores = arrays_of(folder / "scores", bundle.file("scores.safetensors"))
            TrainedGrammar.of(bundle.text("rules.txt"), bundle.text("targets.cfg"), scores, bundle.manifest.sampling)
        return golden_of(bundle)

    return Reader(".files", read, tuple(seeds), (damaged_parts,))


def checkpoint_reader(work: Path) -> Reader:
    """Of checkpoints of a small network, whose meta data are changed under a right digest, or whose bytes are."""
    import torch

    from compgen.trained.checkpoint import Checkpoint, digest, load_saved, read_sealed
    from tests.export.tiny import make

    path = work / "model.pt"
    make(hidden=4, encoder_hidden=3, embedding=3, output=3, attention=2, positions=2).save(path)
    content = read_sealed(path, {"format", "meta", "weights", "pool"})

    def read(path: Path) -> object:
        data = path.read_bytes()
        if not data.startswith(b"PK"):
            changed = {**content, "meta": data.decode("utf-8", "replace"), "version": 2}
            torch.save({**changed, "digest": digest(changed)}, path)
        load_saved(path)
        return Checkpoint.load(path)

    return Reader(".pt", read, (content["meta"].encode(), path.read_bytes()), (damaged_checkpoint,))


def damaged_checkpoint(data: bytes, rng: random.Random) -> bytes:
    """The meta data of a checkpoint, or the bytes of a whole one."""
    return damaged_bytes(data, rng) if data.startswith(b"PK") else damaged_json(data, rng)


def grammar_reader(work: Path) -> Reader:
    """Of grammar files, with right digests."""
    from safetensors import SafetensorError
    from safetensors.numpy import load, save

    from compgen.csl import grammar_file
    from tests.sampling.grammars import grammar_file as made

    seeds = []
    for number, named in ((0, False), (3, True), (13, True)):
        made(number, named).save(work / "model.grammar")
        seeds.append((work / "model.grammar").read_bytes())

    def resealed(data: bytes) -> bytes:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        meta = json.loads(header["__metadata__"][grammar_file.FORMAT])
        arrays = load(data)
        del meta["digest"]
        meta["digest"] = grammar_file._digest(meta, arrays)
        return save(arrays, {grammar_file.FORMAT: json.dumps(meta)})

    def read(path: Path) -> object:
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError, SafetensorError):
            path.write_bytes(resealed(path.read_bytes()))
        return grammar_file.GrammarFile.load(path)

    return Reader(".grammar", read, tuple(seeds), (damaged_arrays, damaged_meta, damaged_meta))


def damaged_meta(data: bytes, rng: random.Random) -> bytes:
    """The JSON that a grammar file has in its metadata, or one of its texts."""
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    name = next(iter(header["__metadata__"]))
    meta = json.loads(header["__metadata__"][name])
    text = rng.choice(("rules", "targets", ""))
    if text:
        meta[text] = damaged_text(str(meta[text]).encode(), rng).decode("utf-8", "replace")
        header["__metadata__"][name] = json.dumps(meta)
    else:
        header["__metadata__"][name] = damaged_json(json.dumps(meta).encode(), rng).decode("utf-8", "replace")
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + body


def run_reader(work: Path) -> Reader:
    """Of a run that was interrupted: the journal, with the right sum, and what was written."""
    import zlib

    from compgen.sampling import partial
    from compgen.sampling.resampling import Counts

    line = b'{"source": ["a", "b"], "target": ["x"], "log_prob": -0.5, "index": 3}\n'
    options = {"compgen": "0.1.0", "-n": 30, "start": 0, "filters": ["novel", "unique"]}
    counts = {"drawn": 7, "kept": 2, "rejected": {"not novel": 3, "not well-formed": 2}, "last": 6}
    journal = {"options": options, "next": 7, "bytes": 2 * len(line), "counts": counts, "seconds": 0.5, "check": 1}
    seed = _whole([("s.json", json.dumps(journal).encode()), ("s.partial", line * 3)])
    out = work / "s.jsonl"

    def summed(journal: bytes, written: bytes) -> bytes:
        state = json.loads(journal)
        counts = Counts(**{name: state["counts"][name] for name in ("drawn", "kept", "rejected", "last")})
        total = zlib.adler32(written[: state["bytes"]])
        state["check"] = partial._check(total, state["bytes"], counts, state.get("step", ""))
        return json.dumps(state).encode()

    def read(path: Path) -> object:
        files = dict(_parts(path.read_bytes()))
        journal, written = files.get("s.json", b""), files.get("s.partial", b"")
        with contextlib.suppress(Exception):
            journal = summed(journal, written)
        (work / "s.jsonl.partial").write_bytes(written)
        (work / "s.jsonl.partial.json").write_bytes(journal)
        with partial.partial_file(out, options, resume=True) as found:
            return sum(1 for _ in found.pairs())

    return Reader(".files", read, (seed,), (damaged_parts,))


def job_reader(work: Path) -> Reader:
    """Of the record that shards of GECA compare themselves with."""
    from compgen.data.examples import Dataset
    from compgen.geca.options import GecaOptions
    from compgen.geca.shards import Job

    folder = work / "job"
    data = Dataset.from_pairs([(["a"], ["A"]), (["b", "c"], ["B", "("])])
    job = Job(data, GecaOptions(), 10, 0, folder, 2)
    job.open()
    seed = (folder / "job.json").read_bytes()

    def read(path: Path) -> object:
        path.rename(folder / "job.json")
        job.open()
        return job.reasons()

    return Reader(".json", read, (seed,), (damaged_json, nested))


def readers(work: Path) -> dict[str, Reader]:
    """All of them. What they need is made in a folder."""
    return {**table_readers(), **text_readers(work), **model_readers(work)}


# The campaign.


class Fault(Exception):  # noqa: N818 - it is no error of this program
    """A reader did what it must not."""


def place_of(trace: TracebackType | None) -> tuple[tuple[str, int], ...]:
    """Where in the package an error comes from."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    return tuple((name, line) for name, line in frames if "/compgen/" in name)[-4:]


def judged(reader: Reader, path: Path) -> tuple[object, ...]:
    """What a reader makes of a file, told apart by where it is refused; raises Fault."""
    began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        reader.read(path)
        found: tuple[object, ...] = ("taken",)
    except UserError as error:
        if "\n" in str(error):
            raise Fault(f"a message of several lines: {str(error)[:300]!r}") from error
        found = ("refused", type(error).__name__, place_of(error.__traceback__))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        end = "".join(traceback.format_exception(error))[-900:]
        raise Fault(f"{type(error).__name__}: {end}") from error
    if (seconds := time.monotonic() - began) > LONGEST:
        raise Fault(f"{seconds:.0f} s")
    if (more := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) * 1024 > MEMORY:
        raise Fault(f"{more * 1024:,} bytes")
    return found


class Numbers:
    """The numbers of inputs: so many, or as many as there is time for. `given` says how many there were."""

    def __init__(self, most: int, seconds: float = 0.0) -> None:
        self.most, self.seconds, self.given = most, seconds, 0

    def __iter__(self) -> Iterator[int]:
        began = time.monotonic()
        while self.given < self.most and not 0 < self.seconds < time.monotonic() - began:
            yield self.given
            self.given += 1


def fuzz(name: str, reader: Reader, inputs: Iterable[int], seed: int, work: Path) -> Iterator[tuple[bytes, str]]:
    """Read the valid inputs, then those of some numbers; yield the faults, with what happened, each kind once."""
    rng = random.Random(f"{seed} {name}")
    corpus, known, told = list(reader.seeds), set(), set()
    path = work / f"input{reader.suffix}"
    for number in chain(range(-len(corpus), 0), inputs):
        data = corpus[number] if number < 0 else changed(rng.choice(corpus), reader.changes, rng)
        path.write_bytes(data)
        try:
            found = judged(reader, path)
        except Fault as fault:
            kind = re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "", str(fault))[-200:]
            if kind not in told:
                yield data, str(fault)
            told.add(kind)
            continue
        if number < 0 and found != ("taken",):
            yield data, f"a valid input is refused: {found}"
        if found not in known and len(data) <= MOST and len(corpus) < CORPUS:
            known.add(found)
            corpus.append(data)


def main() -> None:
    """Read, count, say what fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", help="readers, with commas between them; by default all")
    parser.add_argument("--inputs", type=int, default=1000, help="for each reader")
    parser.add_argument("--seconds", type=float, default=0, help="for each reader; by default as long as it takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="where to keep inputs that fail")
    parser.add_argument("--out", type=Path, help="where figures go, a line a reader, behind those that are there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory(dir=memory()) as folder:
        work = Path(folder)
        all_ = readers(work)
        for name in options.of.split(",") if options.of else all_:
            began = time.monotonic()
            faulthandler.dump_traceback_later(HANG * 60, exit=True)
            numbers = Numbers(options.inputs, options.seconds)
            for data, what in fuzz(name, all_[name], numbers, options.seed, work):
                counts[name] += 1
                print(f"{name}: {what}\n", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"{name}-{options.seed}-{counts[name]}{all_[name].suffix}").write_bytes(data)
            seconds = time.monotonic() - began
            figures: dict[str, Any] = {"reader": name, "inputs": numbers.given, "seconds": round(seconds, 1)}
            figures |= {"a second": round(numbers.given / seconds), "faults": counts[name]}
            print(json.dumps(figures), flush=True)
            if options.out:
                with options.out.open("a") as out:
                    out.write(json.dumps(figures | {"seed": options.seed}) + "\n")
    sys.exit(bool(counts))


if __name__ == "__main__":
    main()

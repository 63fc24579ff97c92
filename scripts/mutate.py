"""Gives damaged bundles to Python and to the C++ runner: each must sample or refuse in one line, and both alike.

    python scripts/mutate.py --bundles 20000
    python scripts/mutate.py --bundles 5000 --runner build/cpp-address,undefined/compgen-sample
    python scripts/mutate.py --of others
    python scripts/mutate.py --direct                     # generators answer by direct inference, too

Bundles of several small networks, or of grammars and Transformers, made here, are damaged where it matters: fields of
graphs (protocol buffers), values of JSON, headers and numbers of arrays, words of rules, with all sizes and hashes
mended, so that what lies behind the hashes is reached; and now and then plain bytes. A mutant fails this test if a
program crashes, hangs, prints a traceback or a sanitizer's report, keeps a sample whose log-probability is no number,
if one program takes what the other refuses, or if they give different samples. Such mutants are kept under --keep.
Samples may differ for two reasons, which are counted, and which `cgen verify` finds: step.safetensors, which the C++
runner alone decodes with, has other numbers than step.onnx; or the graph was changed so that one row of a batch sees
another, and samples depend on the batch.
"""

import argparse
import collections
import contextlib
import hashlib
import json
import math
import multiprocessing
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests' small networks

from compgen.runtime.sealed import MESSAGES, SKIP

OTHER_WEIGHTS, ROWS_MIXED = "sampled, by other weights", "sampled, with rows that see each other"
OTHER_WORDS = "refused, in other words"
FINE = ("sampled", "refused", OTHER_WEIGHTS, ROWS_MIXED, OTHER_WORDS)  # outcomes
DRAWS = 12
ASKED = b"a b\nc\n"  # of what answers
BATCH = 256
LIMIT = 120  # seconds for one program and one mutant
NETWORKS: list[tuple[str, dict[str, Any]]] = [
    ("generator", {}),
    ("generator", {"memories": 1, "feed": False, "tied": False, "output": 6, "initial": "encoder"}),
    ("generator", {"memories": 0, "copying": False, "feed": False}),
    ("generator", {"latent": 5, "own": 9, "mixing": "gate"}),
    ("predictor", {"initial": "encoder"}),
]
ODD: list[Any] = [None, True, False, 0, 1, -1, 2, 255, 2**16, 2**31, 2**53 + 1, 2**63, 2**64, 2**70, 0.5, -0.0, 1e300]
ODD += ["", "a", "B", "float16", "../x", "\x00", "é→", [], [1], [1.5, 0], {}, {"a": 1}, [[[[]]]]]
WORDS = ["NT_1", "NT_2", "NT_100", "NT_x", "###", "##", "##A", "##ROOT", "ROOT", "=>", "#", "<unk>", "a", "A", "(", "é"]
WORDS += ["", "\u2028", "\u00a0", "\x1f", "\x00", "a" * 300, "NT_3 " * 200, "##B " * 99]
Verdict = tuple[str, str]  # of a program, and what it gave or said
Attempt = Callable[[int, random.Random, Path], tuple[str, str, Verdict, Verdict]]
NUMBERS = [0, 1, 2, 3, 7, 127, 128, 2**15, 2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63, 2**64 - 1]


# Damage, by kind of file. Each function takes bytes and gives bytes.


def damaged_graph(data: bytes, rng: random.Random, message: str = "model") -> bytes:
    """One field of a message, or of a message within it, changed, left out, doubled or renumbered."""
    fields = list(parsed(data))
    if not fields:
        return data + bytes([rng.randrange(256)])
    inside = [k for k, (number, wire, _) in enumerate(fields) if wire == 2 and _inner(message, number)]
    if inside and rng.random() < 0.92:
        # By size: large messages hold most of what there is to change.
        at = (
            rng.choices(inside, [len(fields[k][2]) + 1 for k in inside])[0]
            if rng.random() < 0.5
            else rng.choice(inside)
        )
        number, wire, value = fields[at]
        fields[at] = (number, wire, damaged_graph(value, rng, _inner(message, number)))
        return spelled(fields)
    at = rng.randrange(len(fields))
    number, wire, value = fields[at]
    way = rng.choice(("value", "value", "value", "value", "drop", "double", "number", "wire", "order", "reach"))
    if way == "drop":
        del fields[at]
    elif way == "double":
        fields.insert(rng.randrange(len(fields) + 1), fields[at])
    elif way == "number":
        fields[at] = (rng.choice((number + 1, rng.randrange(1, 30), 2**20)), wire, value)
    elif way == "wire":
        fields[at] = (number, 0, varint(rng.choice(NUMBERS))) if wire == 2 else (number, 2, b"abc")
    elif way == "order":
        rng.shuffle(fields)
    elif way == "reach":  # external data, at whatever message this is
        key = b"\x0a\x08location\x12\x0asecret.bin"
        fields.append((13, 2, key))
        fields.append((14, 0, varint(1)))
    else:
        fields[at] = (number, wire, damaged_value(wire, value, rng))
    return spelled(fields)


def damaged_value(wire: int, value: bytes, rng: random.Random) -> bytes:
    """Another value of a field: a number, a text, or numbers packed."""
    if wire == 0:
        return varint(rng.choice(NUMBERS))
    if wire != 2 or not value:
        return bytes(rng.randrange(256) for _ in value) if wire != 2 else b"x"
    if len(value) % 4 == 0 and len(value) > 8 and rng.random() < 0.5:
        return damaged_floats(value, rng)
    return damaged_bytes(value, rng)


def damaged_floats(value: bytes, rng: random.Random) -> bytes:
    """Some of an array's numbers made infinite, no numbers, huge or 0."""
    numbers = bytearray(value)
    for _ in range(rng.choice((1, 1, 8, 64))):
        at = 4 * rng.randrange(len(value) // 4)
        odd = rng.choice((math.nan, math.inf, -math.inf, 3e38, -3e38, 1e-40, 0.0, 1.0))
        numbers[at : at + 4] = struct.pack("<f", odd)
    return bytes(numbers)


def damaged_bytes(value: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, cut, or repeated."""
    if not value:
        return b"x"
    at = rng.randrange(len(value))
    way = rng.choice(("change", "change", "cut", "repeat", "empty"))
    if way == "cut":
        return value[:at]
    if way == "repeat":
        return value[:at] + value[at : at + rng.randrange(1, 64)] + value[at:]
    if way == "empty":
        return b""
    changed = bytearray(value)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def damaged_json(data: bytes, rng: random.Random) -> bytes:
    """One value of a JSON text replaced, left out or renamed; or the text itself in a way that readers differ in."""
    if rng.random() < 0.1:
        text = data.decode("utf-8")
        at = rng.randrange(len(text))
        odd = rng.choice(("NaN", "1e999", "\\ud800", "\ufeff", ",", "[", "}", "// x\n", "\x00", "'", "01", "+1", "1."))
        return (text[:at] + odd + text[at + rng.randrange(2) :]).encode("utf-8", "surrogatepass")
    value = json.loads(data)
    _damage_value(value, rng)
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def _damage_value(value: Any, rng: random.Random) -> None:
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.85:
        _damage_value(value[key], rng)
        return
    way = rng.choice(("odd", "odd", "odd", "drop", "near", "rename", "double"))
    if way == "drop":
        del value[key]
    elif way == "near" and isinstance(value[key], int | float):
        value[key] = value[key] + rng.choice((-1, 1, 0.5, 2**16))
    elif way == "rename" and isinstance(value, dict):
        value[rng.choice(("x", key + "x", "", "../y", "step.onnx"))] = value.pop(key)
    elif way == "double" and isinstance(value, list):
        value.append(value[key])
    else:
        value[key] = rng.choice(ODD)


def damaged_text(data: bytes, rng: random.Random) -> bytes:
    """A word of some line replaced, left out or put in; or a line left out, doubled or joined to another."""
    lines = [line.split(" ") for line in data.decode("utf-8").split("\n")]
    at = rng.randrange(len(lines))
    line = lines[at]
    place = rng.randrange(len(line))
    way = rng.choice(("word", "word", "word", "put in", "drop", "swap", "no line", "double", "join"))
    if way == "word":
        line[place] = rng.choice(WORDS)
    elif way == "put in":
        line.insert(place, rng.choice(WORDS))
    elif way == "drop":
        del line[place]
    elif way == "swap":
        line[place] = rng.choice(rng.choice(lines))
    elif way == "no line":
        del lines[at]
    elif way == "double":
        lines.insert(rng.randrange(len(lines)), line)
    else:
        line += rng.choice(lines)
    return "\n".join(map(" ".join, lines)).encode()


def damaged_arrays(data: bytes, rng: random.Random) -> bytes:
    """A value of a safetensors file's header, its length, or numbers of its arrays."""
    size = int.from_bytes(data[:8], "little")
    head, body = data[8 : 8 + size], data[8 + size :]
    way = rng.choice(("header", "header", "floats", "body", "length", "more"))
    if way == "header":
        head = damaged_json(head, rng)
    elif way == "floats" and len(body) >= 4:
        body = damaged_floats(body[: len(body) // 4 * 4], rng) + body[len(body) // 4 * 4 :]
    elif way == "body" and body:
        body = damaged_bytes(body, rng)
    elif way == "more":
        body += b"\0"
    length = rng.choice(NUMBERS) if way == "length" else len(head)
    return length.to_bytes(8, "little") + head + body


# Protocol buffers.


def _inner(message: str, number: int) -> str:
    """The message that a field of a message holds; empty if it is none."""
    rule = MESSAGES.get(message, {}).get(number, SKIP)
    return rule if rule in MESSAGES else ""


def parsed(data: bytes) -> list[tuple[int, int, bytes]]:
    """Number, wire type and content of each field; a number keeps its encoding."""
    found, at = [], 0
    while at < len(data):
        tag, after = _number(data, at)
        wire = tag & 7
        if wire == 0:
            _, end = _number(data, after)
            value = data[after:end]
        elif wire == 2:
            size, after = _number(data, after)
            value, end = data[after : after + size], after + size
        else:
            end = after + (8 if wire == 1 else 4)
            value = data[after:end]
        found.append((tag >> 3, wire, value))
        at = end
    return found


def spelled(fields: list[tuple[int, int, bytes]]) -> bytes:
    """The message of some fields."""
    return b"".join(
        varint(number << 3 | wire) + (varint(len(value)) if wire == 2 else b"") + value
        for number, wire, value in fields
    )


def varint(value: int) -> bytes:
    """A number as protocol buffers write it."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = place = 0
    while True:
        value |= (data[at] & 127) << place
        at, place = at + 1, place + 7
        if data[at - 1] < 128:
            return value, at


# Bundles.


def break_one(bundle: Path, rng: random.Random) -> str:
    """Damage one file of a bundle, mend the manifest, and say which file it was."""
    names = sorted(
        path.name for path in bundle.iterdir() if path.name not in ("README.md", "golden.json", "sampler.ts")
    )
    weights = [4 if name in ("manifest.json", "step.onnx") else 2 for name in names]
    path = bundle / rng.choices(names, weights)[0]
    data = path.read_bytes()
    if rng.random() < 0.1:
        broken = damaged_bytes(data, rng)
    elif path.suffix == ".onnx":
        broken = damaged_graph(data, rng)
    elif path.suffix == ".safetensors":
        broken = damaged_arrays(data, rng)
    elif path.suffix in (".txt", ".cfg"):
        broken = damaged_text(data, rng)
    else:
        broken = damaged_json(data, rng)
    path.write_bytes(broken)
    if path.name != "manifest.json":
        manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
        manifest["files"][path.name] = {"sha256": hashlib.sha256(broken).hexdigest(), "size": len(broken)}
        (bundle / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return path.name


def whole_bundles(folder: Path) -> list[Path]:
    """Exports of small networks, and one in 8-bit integers."""
    from compgen.export.bundle_writer import export
    from tests.export.tiny import make

    made = []
    for number, (kind, changes) in enumerate(NETWORKS):
        made.append(folder / f"whole-{number}")
        make(kind, **changes).save(folder / "model.pt")
        export(folder / "model.pt", made[-1], batches={7: 20}, torchscript=False, quiet=True)
    made.append(folder / "whole-int8")
    make(hidden=64).save(folder / "model.pt")
    export(folder / "model.pt", made[-1], batches={7: 20}, int8=True, quiet=True)
    return made


def other_bundles(folder: Path) -> list[Path]:
    """Exports of random grammars, most with target grammars, and of small Transformers, one in 8-bit integers."""
    from compgen.export.bundle_writer import export
    from tests.export.test_transformer import LARGE, saved
    from tests.sampling.grammars import grammar_file

    made = []
    for number, named in ((0, False), (3, True), (13, True)):
        made.append(folder / f"grammar-{number}")
        grammar_file(number, named).save(folder / "model.grammar")
        export(folder / "model.grammar", made[-1], batches={7: 20}, quiet=True)
    made.append(folder / "transformer")
    export(saved(folder / "model.pt", seed=39, spread=1.0, size=16), made[-1], batches={7: 20}, quiet=True)
    made.append(folder / "transformer-int8")
    export(saved(folder / "model.pt", **LARGE), made[-1], batches={7: 20}, int8=True, quiet=True)
    return made


# The two programs. A verdict is what was sampled, as one text, or that it was refused.


def python_loop(pipe: Connection) -> None:
    """Judge bundles in a process of its own, which imports once."""
    from compgen.api import Generator, Predictor
    from compgen.errors import UserError

    os.environ["OMP_NUM_THREADS"] = "1"
    while True:
        folder, kind, batch = pipe.recv()
        try:
            if kind in ("predictor", "direct"):
                asked = [line.split() for line in ASKED.decode().splitlines()]
                loaded = (Generator if kind == "direct" else Predictor).load(folder, provider="cpu")
                answers = loaded.answer(asked) if kind == "direct" else loaded.predict(asked, batch=batch)
                pipe.send(("sampled", json.dumps(answers)))
                continue
            if kind == "grammar":
                draws = list(Generator.load(folder).draw(0, 0, DRAWS, batch=batch))
            else:
                draws = list(Generator.load(folder, provider="cpu").draw(0, 0, DRAWS, workers=1, batch=batch))
            if not all(math.isfinite(draw.log_prob) for draw in draws):
                pipe.send(("a sample whose probability is no number", folder))
            pipe.send(("sampled", json.dumps([[draw.index, draw.finished, *draw.tokens] for draw in draws])))
        except UserError as error:
            pipe.send(("refused", str(error)) if "\n" not in str(error) else ("a message of several lines", str(error)))
        except BaseException:
            pipe.send(("traceback", traceback.format_exc()))


def _served(loop: Callable[[Connection], None], pipe: Connection) -> None:
    with contextlib.suppress(EOFError):  # nobody asks any more
        loop(pipe)


class Python:
    """A process in which a loop judges as Python does, started again if it dies."""

    def __init__(self, loop: Callable[[Connection], None] = python_loop) -> None:
        self._loop = loop
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # threads of libraries would not survive a fork
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_served, args=(self._loop, other), daemon=True)
        self._process.start()
        other.close()

    def __call__(self, *asked: object) -> Verdict:
        """The verdict, and what was sampled or said."""
        self._pipe.send(asked)
        try:
            if self._pipe.poll(LIMIT):
                verdict, said = self._pipe.recv()
                return str(verdict), str(said)
            found = ("hang", "")
        except EOFError:
            self._process.join()
            found = ("crash", f"exit code {self._process.exitcode}")
        self._process.kill()
        self._start()
        return found


def by_program(
    command: Sequence[object],
    given: bytes = b"",
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> Verdict:
    """A C++ program's verdict, and what it wrote or said."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            input=given,
            capture_output=True,
            timeout=LIMIT,
            env=environment,
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "hang", ""
    said = done.stderr.decode("utf-8", "replace")
    if "allocation-size-too-big" in said:  # where memory is refused, this sanitizer ends a program that would say so
        return "refused", "error: not enough memory\n"
    if "Sanitizer" in said or "runtime error" in said:
        return "sanitizer's report", said
    if done.returncode == 2:
        return ("refused", said) if said.startswith("error: ") and said.count("\n") == 1 else ("odd message", said)
    if done.returncode:
        return "crash", f"exit code {done.returncode}\n{said}"
    try:
        return "sampled", done.stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        return "output that is no UTF-8", str(error)


def by_runner(runner: Path, bundle: Path, kind: str, step: str) -> Verdict:
    """The C++ runner's verdict, and what was sampled or said."""
    from compgen.sampling import native

    command = [runner, bundle, "--workers", 1]
    command += [] if kind == "grammar" else ["--step", step]
    command += ["--direct"] if kind == "direct" else []
    command += ["--input", "-"] if kind in ("predictor", "direct") else ["--raw", "--draws", DRAWS]
    verdict, said = by_program(command, ASKED, native.environment())
    if verdict != "sampled":
        return verdict, said
    try:
        lines = [json.loads(line, parse_constant=float) for line in said.splitlines()]
        if kind in ("predictor", "direct"):
            return "sampled", json.dumps([line["target"] for line in lines])
        return "sampled", json.dumps([[line["index"], line["finished"], *line["tokens"]] for line in lines])
    except (ValueError, KeyError) as error:
        return "output that is no JSON", f"{error}"


def options_of(text: str | None, count: str) -> argparse.ArgumentParser:
    """The options of a program that tries mutants; `count` names the one that says how many."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runner", type=Path, help="the C++ runner; by default the one that `make cpp` built")
    parser.add_argument(count, dest="count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, to share the work")
    parser.add_argument("--keep", type=Path, help="where to keep mutants that fail; by default they are not kept")
    return parser


def campaign(options: argparse.Namespace, folder: Path, whole: int, attempt: Attempt) -> NoReturn:
    """Try what is whole, which has numbers below 0, and then the mutants; tell what fails, count, and exit."""
    outcomes: collections.Counter[str] = collections.Counter()
    failures, began = 0, time.monotonic()
    for number in range(-whole, options.count):
        work = folder / "mutant"
        work.mkdir()
        rng = random.Random(f"{options.seed}-{options.first + number}")
        what, outcome, ours, theirs = attempt(number, rng, work)
        outcomes[outcome] += 1
        if outcome not in FINE:
            failures += 1
            print(
                f"mutant {options.first + number} ({what}): {outcome}: {ours[1][-600:]} | {theirs[1][-600:]}",
                flush=True,
            )
            if options.keep:
                shutil.copytree(work, options.keep / str(options.first + number), symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(work)
        if number % 500 == 499:
            print(f"{number + 1:,}: {dict(outcomes)} in {time.monotonic() - began:.0f} s", flush=True)
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
    print(f"{options.count:,} mutants, seed {options.seed}: {counts}")
    sys.exit(bool(failures))


def memory() -> str | None:
    """A folder whose files are in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> None:
    """Try the whole bundles, then the broken ones."""
    parser = options_of(__doc__, "--bundles")
    parser.add_argument(
        "--of", choices=("networks", "others"), default="networks", help="others: grammars, Transformers"
    )
    parser.add_argument("--direct", action="store_true", help="half of the generators answer, and do not draw")
    options = parser.parse_args()
    from compgen.sampling import native

    runner, python = (options.runner or native.runner()).absolute(), Python()
    with tempfile.TemporaryDirectory(dir=memory()) as name:
        whole = whole_bundles(Path(name)) if options.of == "networks" else other_bundles(Path(name))

        def attempt(number: int, rng: random.Random, folder: Path) -> tuple[str, str, Verdict, Verdict]:
            origin, bundle = whole[number] if number < 0 else rng.choice(whole), folder / "bundle"
            shutil.copytree(origin, bundle)
            file = break_one(bundle, rng) if number >= 0 else "nothing"
            manifest = json.loads((origin / "manifest.json").read_text("utf-8"))
            kind = "grammar" if manifest.get("architecture") == "grammar" else manifest["kind"]
            if options.direct and kind == "generator" and manifest["prototypes"] and rng.random() < 0.5:
                kind = "direct"
            # Our own step of a Transformer runs no graph at all.
            graphs = ("step.onnx", "encoder.onnx") if manifest.get("architecture") == "transformer" else ("step.onnx",)
            step = "graph" if file in graphs else "own"
            ours, theirs = python(str(bundle), kind, BATCH), by_runner(runner, bundle, kind, step)
            outcome = judged(ours, theirs, file, number < 0)
            drawn = "generator" if kind == "direct" else kind
            batches = (python(str(bundle), drawn, batch)[1] for batch in (1, BATCH) if outcome == "other samples")
            if len(set(batches)) > 1:
                outcome = ROWS_MIXED
            return file, outcome, ours, theirs

        campaign(options, Path(name), len(whole), attempt)


def judged(ours: Verdict, theirs: Verdict, file: str, whole: bool) -> str:
    """`sampled` or `refused` if both programs say so, perhaps with a reason; else what is wrong."""
    for who, (verdict, _) in (("Python", ours), ("C++", theirs)):
        if verdict not in ("sampled", "refused"):
            return f"{who}: {verdict}"
    if ours[0] != theirs[0]:
        return f"Python {ours[0]}, C++ {theirs[0]}"
    if ours[0] == "sampled" and ours[1] != theirs[1]:
        return OTHER_WEIGHTS if file == "step.safetensors" else "other samples"
    return "a whole bundle refused" if whole and ours[0] == "refused" else ours[0]


if __name__ == "__main__":
    main()

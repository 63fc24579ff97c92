"""Asks the C++ readers and Python's about the same inputs, those that fuzzing has collected: they must judge alike.

    python scripts/fuzz_compare.py build/cpp/replay build/fuzz/corpus
    cmake --build build/fuzz-lm --target replay && python scripts/fuzz_compare.py build/fuzz-lm/replay build/fuzz/corpus

The first is `replay` of cpp_runner/fuzz, which says of each file whether a reader takes it. What is refused by one
alone is told, and fails this test.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from compgen.errors import UserError

AT_ONCE = 500  # files


def asked(program: Path, reader: str, files: list[Path]) -> list[bool] | None:
    """Which files a C++ reader takes; nothing if the program has no such reader."""
    found: list[bool] = []
    for begin in range(0, len(files), AT_ONCE):
        some = files[begin : begin + AT_ONCE]
        done = subprocess.run([program, reader, *some], capture_output=True, check=False)
        if done.returncode == 2:
            return None
        if done.returncode:
            sys.exit(f"{reader}: {done.stderr.decode('utf-8', 'replace')[-500:]}")
        found += [line == b"taken" for line in done.stdout.split(b"\n") if line.startswith((b"taken", b"refused: "))]
    return found


def readers(folder: Path) -> dict[str, Callable[[bytes], object]]:
    """What Python makes of the same content; of targets, rules stand behind a line ===."""
    from compgen.csl.rules import Grammar
    from compgen.csl.targets import TargetGrammar
    from compgen.data.content import read_bytes
    from compgen.lm.mixture import Mixture
    from compgen.runtime.bundle import _pool, arrays_of
    from compgen.runtime.manifest import strict_json
    from compgen.runtime.sealed import require_sealed

    def targets(data: bytes) -> None:
        first, cut, second = data.partition(b"===\n")
        grammar = Grammar.parse((second if cut else b"a b ### a b").decode().splitlines())
        checker = TargetGrammar.parse(first.decode().splitlines()).checker(grammar.alphabet)
        for rule in grammar.rules:
            checker.signatures(rule.target)

    def packed(data: bytes) -> bytes:
        path = folder / "x.gz"
        path.write_bytes(data)
        return read_bytes(path, lines=False)

    def mixture(data: bytes) -> None:
        (folder / "mixture").write_bytes(data)
        Mixture.open(folder / "mixture")

    return {
        "json": strict_json,
        "arrays": lambda data: arrays_of(folder, data),
        "pool": lambda data: _pool(folder, data[1:], data[0] % 4, 12) if data else None,
        "graph": lambda data: require_sealed("graph", data),
        "rules": lambda data: Grammar.parse(data.decode().splitlines()),
        "targets": targets,
        "text": bytes.decode,
        "gzip": packed,
        "mixture": mixture,
    }


def takes(read: Callable[[bytes], object], data: bytes) -> bool:
    """Whether Python takes it."""
    try:
        read(data)
    except (UserError, ValueError):
        return False
    return True


def main() -> None:
    """Compare, reader by reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("corpus", type=Path, help="a folder with one of inputs for each reader")
    options = parser.parse_args()
    differing = 0
    with tempfile.TemporaryDirectory() as name:
        for reader, read in readers(Path(name)).items():
            files = sorted((options.corpus / reader).glob("*"))
            if not files or (theirs := asked(options.program, reader, files)) is None:
                continue
            ours = [takes(read, path.read_bytes()) for path in files]
            odd = [path for path, one, other in zip(files, ours, theirs, strict=True) if one != other]
            print(f"{reader}: {len(files):,} inputs, {sum(ours):,} taken, {len(odd)} judged otherwise", flush=True)
            for path in odd[:5]:
                print(f"    {path}: Python {'takes' if takes(read, path.read_bytes()) else 'refuses'} it")
            differing += len(odd)
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()

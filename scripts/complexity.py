"""Lines by package, and the functions that are too long or too complex; exit code 1 if there are any.

    python scripts/complexity.py [FOLDER]

Cyclomatic complexity is radon's. A function's lines count its docstring.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from radon.complexity import cc_visit
from radon.visitors import Class, Function

MOST_COMPLEX, MOST_LINES = 15, 60


def functions(path: Path) -> Iterator[Function]:
    """The functions and methods of a module, those within functions too."""
    for block in cc_visit(path.read_text("utf-8")):
        if isinstance(block, Function):
            yield block
            yield from block.closures
        elif isinstance(block, Class):
            for inner in block.inner_classes:
                yield from inner.methods


def main() -> None:
    """Print the table and what is over the limits."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "compgen")
    lines: Counter[str] = Counter()
    found: list[tuple[int, int, str]] = []
    for path in sorted(root.rglob("*.py")):
        within = path.relative_to(root)
        package = within.parts[0] if len(within.parts) > 1 else "modules at the top"
        lines[package] += len(path.read_text("utf-8").splitlines())
        found += [
            (function.complexity, function.endline - function.lineno + 1, f"{path}: {function.fullname}")
            for function in functions(path)
        ]
    for package, count in lines.most_common():
        print(f"{count:7,} {package}")
    print(f"{sum(lines.values()):7,} in all; {len(found):,} functions")
    complexity, length, _ = (max(column) for column in zip(*found, strict=True))
    print(f"most complex: {complexity} (limit {MOST_COMPLEX}); longest: {length} lines (limit {MOST_LINES})")
    over = [row for row in found if row[0] > MOST_COMPLEX or row[1] > MOST_LINES]
    for complexity, length, name in sorted(over, reverse=True):
        print(f"{name}: complexity {complexity}, {length} lines")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()

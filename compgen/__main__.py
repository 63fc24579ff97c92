"""The command `cgen`, which is also `compgen` and `python -m compgen`."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command; Ctrl-C while it is being imported ends it quietly, too."""
    try:
        from compgen.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

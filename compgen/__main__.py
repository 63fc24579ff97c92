"""The `compgen` command, also as `python -m compgen`."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Entry point: Ctrl-C ends the command as quietly while it is loaded as it does later."""
    try:
        from compgen.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

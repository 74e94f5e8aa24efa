"""`python -m graphdsl`, and the command `graphdsl`: the command line, interrupted or not before it is there."""

import os
import sys


def main() -> None:
    """Run the command line, and end the process."""
    try:
        from graphdsl.cli.main import main

        main()
    except KeyboardInterrupt:  # before the command line could take care of it, or while it did
        sys.stderr.write("interrupted\n")
        sys.stderr.flush()
        os._exit(130)


if __name__ == "__main__":
    main()

"""`python -m graphdsl`: the command line."""

import sys

if __name__ == "__main__":
    try:
        from graphdsl.cli.main import main

        main()
    except KeyboardInterrupt:  # before the command line could take care of it
        sys.exit(130)

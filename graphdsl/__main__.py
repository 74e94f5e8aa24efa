"""`python -m graphdsl`: the command line."""

from graphdsl.cli.main import main

if __name__ == "__main__":
    main()

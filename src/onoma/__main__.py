"""``python -m onoma``: the command line."""

from onoma.cli import main

if __name__ == "__main__":
    main()

"""`python -m polyplex`, and the `polyplex` command."""


def main() -> None:
    """Run the command line."""
    from polyplex.cli import run

    run()


if __name__ == "__main__":
    main()

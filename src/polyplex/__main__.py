"""`python -m polyplex`, and the `polyplex` command."""


def main() -> None:
    """Run the command line."""
    try:
        from polyplex.cli import run

        run()
    except KeyboardInterrupt:  # while modules were still being imported
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()

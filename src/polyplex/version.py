"""The version of this package."""

from functools import cache


@cache
def version() -> str:
    """As installed; `0` where the package runs without being installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("polyplex")
    except PackageNotFoundError:
        return "0"

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance: runs the official conformance suite, which needs Node.js")

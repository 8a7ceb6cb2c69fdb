"""A protection that is not there is refused, a feature that is not there is said, and what asks for neither is fine."""

from typing import Any

import pytest

from polyplex.config import load_config_dict
from polyplex.config.unbuilt import UNBUILT
from polyplex.errors import ConfigError

PROTECTIONS = {
    "policy": {"policy": "policy.yaml"},
    "auth": {"auth": {"issuers": ["https://id.example"]}},
    "guard.pins": {"guard": {"pins": "strict"}},
}
FEATURES: dict[str, dict[str, Any]] = {
    "servers.*.trust": {"servers": {"a": {"trust": "untrusted"}}},
    "builtins": {"builtins": ["memory"]},
    "state": {"state": "redis://host"},
}


def warnings_of(options: dict[str, Any]) -> tuple[str, ...]:
    return load_config_dict({"mcpServers": {"a": {"command": "x"}}, "polyplex": options}, environ={}).warnings


def test_each_line_of_the_table_is_tested_here() -> None:
    assert {".".join(unbuilt.path): unbuilt.protection for unbuilt in UNBUILT} == dict.fromkeys(
        PROTECTIONS, True
    ) | dict.fromkeys(FEATURES, False)


@pytest.mark.parametrize("key", PROTECTIONS)
def test_a_protection_that_is_not_enforced_is_refused(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        warnings_of(PROTECTIONS[key])
    assert str(caught.value) == (
        f"polyplex.{key}: {key} is not enforced by this version of polyplex; remove the key to start without it"
    )


@pytest.mark.parametrize("key", FEATURES)
def test_a_feature_that_is_not_there_is_said(key: str) -> None:
    (warning,) = warnings_of(FEATURES[key])
    assert warning.startswith(f"polyplex.{key.replace('*', 'a')}: has no effect in this version of polyplex: ")


@pytest.mark.parametrize(
    "options",
    [
        {"guard": {"pins": "off"}, "policy": None, "auth": {}, "builtins": [], "expose": "search", "state": "sqlite:x"},
        {"payloads": {"inlineLimitBytes": 65536, "store": "file:x"}, "results": {"maxTokens": 20000}, "guard": {}},
        {"servers": {"a": {"trust": "trusted"}}, "expose": "auto", "state": None},
    ],
)
def test_values_that_ask_for_nothing_are_quiet(options: dict[str, Any]) -> None:
    assert warnings_of(options) == ()


def test_types_are_checked_first() -> None:
    with pytest.raises(ConfigError, match="polyplex.policy: expected a string, found the number 1"):
        warnings_of({"policy": 1})

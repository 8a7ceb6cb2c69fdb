"""The committed schema and page are those of the model, and accept what the loader accepts."""

from typing import Any

import jsonschema
import pytest

from polyplex.config.bind import keys_of
from polyplex.config.load import load_config_dict
from polyplex.config.model import ConfigFile, GatewayOptions, ServerEntry, ServerOptions
from polyplex.config.schema import config_json_schema, documented_keys
from polyplex.errors import ConfigError
from scripts.config_reference import PAGE, SCHEMA, page_text, schema_text

HOW = "run: python scripts/config_reference.py"


def test_the_schema_file_is_up_to_date() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), HOW


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_text(page), HOW


@pytest.mark.parametrize("model", [ConfigFile, ServerEntry, GatewayOptions, ServerOptions])
def test_every_key_is_documented_with_its_meaning(model: type) -> None:
    keys = {key.name: key for key in documented_keys(model)}
    assert set(keys_of(model)) <= set(keys)
    assert [name for name, key in keys.items() if not key.meaning or not key.type] == []


def test_nested_keys_are_documented() -> None:
    names = [key.name for key in documented_keys(GatewayOptions, "polyplex.")]
    assert "polyplex.guard.pins" in names
    assert names.index("polyplex.payloads.store") == names.index("polyplex.payloads") + 1


def test_keys_that_do_nothing_yet_say_so() -> None:
    meanings = {key.name: key.meaning for key in documented_keys(GatewayOptions, "polyplex.")}
    assert "Not enforced by this version" in meanings["polyplex.policy"]
    assert "Not in this version" in meanings["polyplex.builtins"]
    assert "version" not in meanings["polyplex.naming"]


@pytest.mark.parametrize(
    ("content", "valid"),
    [
        ({}, True),
        ({"mcpServers": {"a": {"command": "x", "args": ["y"], "autoApprove": []}}, "other": 1}, True),
        ({"servers": {"a": {"url": "http://x", "headers": {"A": "b"}}}, "inputs": []}, True),
        ({"polyplex": {"servers": {"a": {"timeoutSeconds": 5, "idleSeconds": None}}, "naming": "bare"}}, True),
        ({"mcpServers": {"a": {"command": 1}}}, False),
        ({"polyplex": {"naming": "other"}}, False),
        ({"polyplex": {"servers": {"a": {"timeoutSeconds": 0}}}}, False),
    ],
)
def test_the_schema_agrees_with_the_loader(content: dict[str, Any], valid: bool) -> None:
    validator = jsonschema.Draft202012Validator(config_json_schema())
    assert validator.is_valid(content) is valid
    try:
        load_config_dict(content, environ={})
    except ConfigError:
        assert not valid
    else:
        assert valid

"""The types of the providers' own SDKs as checks: pydantic refuses what they do not allow."""

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import TypeAdapter

MODULES = {"openai": "openai", "anthropic": "anthropic", "gemini": "google.genai"}


def installed(provider: str) -> bool:
    """True where the provider's SDK can be imported."""
    try:
        return importlib.util.find_spec(MODULES[provider]) is not None
    except ModuleNotFoundError:
        return False


@cache
def tool_check(provider: str, form: str) -> Callable[[dict[str, Any]], object]:
    """Raises `pydantic.ValidationError` for a declaration that the SDK's types do not allow."""
    if provider == "openai" and form == "chat":
        from openai.types.chat import ChatCompletionFunctionToolParam

        return TypeAdapter(ChatCompletionFunctionToolParam).validate_python
    if provider == "openai":
        from openai.types.responses import FunctionToolParam

        return TypeAdapter(FunctionToolParam).validate_python
    if provider == "anthropic":
        from anthropic.types import ToolParam

        return TypeAdapter(ToolParam).validate_python
    from google.genai import types

    return lambda declaration: types.Tool.model_validate({"functionDeclarations": [declaration]})

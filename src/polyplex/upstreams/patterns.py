"""Allow and deny lists of tool names: `*` and `?`, deny wins."""

import fnmatch
import re


class Patterns:
    """Decides by a server's own tool names."""

    __slots__ = ("_allow", "_deny")

    def __init__(self, allow: tuple[str, ...], deny: tuple[str, ...]) -> None:
        self._allow = None if "*" in allow else _compile(allow)
        self._deny = _compile(deny) if deny else None

    def allows(self, name: str) -> bool:
        """True where a pattern of the allow list matches and none of the deny list."""
        if self._deny is not None and self._deny.fullmatch(name):
            return False
        return self._allow is None or self._allow.fullmatch(name) is not None


def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{fnmatch.translate(pattern)})" for pattern in patterns) or r"(?!)")

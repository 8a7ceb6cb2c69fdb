"""The dated revisions of the protocol, their two eras, and which methods exist where (specification, "Versioning")."""

from enum import StrEnum
from typing import Final


class Era(StrEnum):
    """How a peer keeps state: `LEGACY` opens with `initialize`, `MODERN` is stateless, every request stands alone."""

    LEGACY = "legacy"
    MODERN = "modern"


# Read on the hot path: a member of an enumeration costs several times what a global name does (Python 3.11).
LEGACY: Final = Era.LEGACY
MODERN: Final = Era.MODERN

R2024_11_05: Final = "2024-11-05"
R2025_03_26: Final = "2025-03-26"
R2025_06_18: Final = "2025-06-18"
R2025_11_25: Final = "2025-11-25"
R2026_07_28: Final = "2026-07-28"

LEGACY_REVISIONS: Final = (R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25)
MODERN_REVISIONS: Final = (R2026_07_28,)
LATEST_LEGACY: Final = R2025_11_25
LATEST_MODERN: Final = R2026_07_28
ASSUMED_WITHOUT_HEADER: Final = R2025_03_26

TASK_METHODS: Final = frozenset({"tasks/get", "tasks/list", "tasks/result", "tasks/cancel"})
LEGACY_ONLY_METHODS: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
MODERN_ONLY_METHODS: Final = frozenset({"server/discover", "subscriptions/listen"})
LIST_METHODS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
# The notifications of servers that not every revision has: where they begin, and where they end.
_NOTICES: Final = {
    "notifications/elicitation/complete": (R2025_11_25, R2025_11_25),
    "notifications/tasks/status": (R2025_11_25, R2025_11_25),
    "notifications/tasks": (R2026_07_28, "9999"),
    "notifications/subscriptions/acknowledged": (R2026_07_28, "9999"),
    "notifications/cancelled": ("", R2025_11_25),
    "notifications/roots/list_changed": ("9999", ""),
    "notifications/initialized": ("9999", ""),
}
ROUTED_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})
INPUT_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
CACHEABLE_METHODS: Final = frozenset({*LIST_METHODS, "resources/read", "server/discover"})
ASK_METHODS: Final = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}


def era_of(revision: str) -> Era:
    """The era of a revision string; dates compare as text, so later unknown revisions count as modern."""
    return Era.MODERN if revision >= R2026_07_28 else Era.LEGACY


def negotiate(requested: str) -> str:
    """The legacy revision to answer an `initialize` with: the one asked for where known, else the latest."""
    return requested if requested in LEGACY_REVISIONS else LATEST_LEGACY


def allows_batches(revision: str) -> bool:
    """JSON-RPC batches exist in 2025-03-26 alone."""
    return revision == R2025_03_26


def knows_notice(method: str, revision: str) -> bool:
    """False for a notification of other revisions than this; those of vendors belong to none and pass."""
    first, last = _NOTICES.get(method, ("", "9999"))
    return first <= revision <= last


def has_resumption(revision: str) -> bool:
    """`Last-Event-ID` exists from 2025-03-26 to 2025-11-25."""
    return R2025_03_26 <= revision <= R2025_11_25

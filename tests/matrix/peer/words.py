"""The revisions, and since when what exists. Standard library only: the scripted peer runs without site-packages."""

from typing import Any

Json = dict[str, Any]
META = "io.modelcontextprotocol/"
R1, R2, R3, R4, R5 = REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
LEGACY, MODERN = REVISIONS[:4], R5
TASKS_EXTENSION = META + "tasks"
UI_EXTENSION = META + "ui"
VENDOR_EXTENSION = "com.example/vendor"
BOTH = ("tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read", "prompts/list")
CLIENT_METHODS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*BOTH, "prompts/get", "completion/complete", "notifications/cancelled"), REVISIONS),
    **dict.fromkeys(("initialize", "notifications/initialized", "ping", "logging/setLevel"), LEGACY),
    **dict.fromkeys(("resources/subscribe", "resources/unsubscribe", "notifications/progress"), LEGACY),
    "notifications/roots/list_changed": LEGACY,
    **dict.fromkeys(("tasks/list", "tasks/result", "notifications/tasks/status"), (R4,)),
    **dict.fromkeys(("tasks/get", "tasks/cancel"), (R4, R5)),
    **dict.fromkeys(("tasks/update", "server/discover", "subscriptions/listen"), (R5,)),
}
SERVER_METHODS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ping", "sampling/createMessage", "roots/list"), LEGACY),
    "elicitation/create": (R3, R4),
    **dict.fromkeys(("tasks/get", "tasks/list", "tasks/result", "tasks/cancel"), (R4,)),
    **dict.fromkeys(("notifications/progress", "notifications/message", "notifications/resources/updated"), REVISIONS),
    **{f"notifications/{kind}/list_changed": REVISIONS for kind in ("tools", "prompts", "resources")},
    "notifications/cancelled": REVISIONS,
    **dict.fromkeys(("notifications/elicitation/complete", "notifications/tasks/status"), (R4,)),
    **dict.fromkeys(("notifications/subscriptions/acknowledged", "notifications/tasks"), (R5,)),
}


def since(revision: str) -> tuple[str, ...]:
    """This revision and all later ones."""
    return REVISIONS[REVISIONS.index(revision) :]

"""Which variables of our own environment a child process gets to see: locations, locale and network, no secrets."""

from collections.abc import Mapping, Sequence
from typing import Final

# fmt: off
SAFE_NAMES: Final = frozenset(
    (
        # who and where
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
        # network: proxies and certificates
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
        # where npm, uv, pip and the like keep what they have downloaded
        "NPM_CONFIG_CACHE", "npm_config_cache", "COREPACK_HOME", "DENO_DIR", "BUN_INSTALL_CACHE_DIR", "VOLTA_HOME",
        "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "PIP_CACHE_DIR",
        "PYTHONPYCACHEPREFIX",
        # Windows
        "APPDATA", "LOCALAPPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
        "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "USERPROFILE", "WINDIR", "PROCESSOR_ARCHITECTURE",
    )
)
# fmt: on
SAFE_PREFIXES: Final = ("LC_", "XDG_")
EVERYTHING: Final = "*"


def safe_environment(parent: Mapping[str, str], extra: Mapping[str, str], inherit: Sequence[str]) -> dict[str, str]:
    """Return the environment of a child: the safe part of `parent`, the names in `inherit` ("*": all), then `extra`."""
    if EVERYTHING in inherit:
        return {**parent, **extra}
    wanted = SAFE_NAMES.union(inherit)
    kept = {
        name: value
        for name, value in parent.items()
        # A value that starts with "()" is a function exported by a shell: code, not a setting.
        if (name in wanted or name.startswith(SAFE_PREFIXES)) and not value.startswith("()")
    }
    return {**kept, **extra}

"""Where polyplex keeps what it writes, by the XDG base directory rules; folders are made on first use, mode 0700."""

import os
from collections.abc import Mapping
from pathlib import Path


def home(environ: Mapping[str, str] | None = None) -> Path:
    """The user's home folder: `HOME` where it is set, else what the system says."""
    configured = (os.environ if environ is None else environ).get("HOME", "")
    return Path(configured) if configured else Path.home()


def config_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of the user's own configuration; it is only read, never created."""
    return _location("XDG_CONFIG_HOME", ".config", environ)


def state_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for what must survive a restart, created on first use."""
    return _private(_location("XDG_STATE_HOME", ".local/state", environ))


def state_database(state: str | None) -> Path:
    """The state database of this machine for the value of `polyplex.state`; the default one where that is shared."""
    if state is not None and state.startswith("sqlite:"):
        return Path(state.removeprefix("sqlite:"))
    return state_dir() / "state.db"


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The folder for what may be deleted at any time, created on first use."""
    return _private(_location("XDG_CACHE_HOME", ".cache", environ))


def _location(variable: str, fallback: str, environ: Mapping[str, str] | None) -> Path:
    configured = (os.environ if environ is None else environ).get(variable, "")
    # The XDG specification says that a relative path must be ignored.
    root = Path(configured) if configured.startswith("/") else home(environ) / fallback
    return root / "polyplex"


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder

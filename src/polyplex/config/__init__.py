"""Configuration: the files users already have, as frozen structs. Knows nothing of what is done with them."""

from polyplex.config.load import load_config, load_config_dict
from polyplex.config.model import (
    ClientOptions,
    Config,
    Expose,
    GatewayOptions,
    Isolation,
    Kind,
    PayloadOptions,
    ResultMode,
    ResultOptions,
    SearchOptions,
    ServerConfig,
    ServerOptions,
    Summary,
    ToolOptions,
    Trust,
)
from polyplex.config.paths import cache_dir, config_dir, state_database, state_dir

__all__ = [
    "ClientOptions",
    "Config",
    "Expose",
    "GatewayOptions",
    "Isolation",
    "Kind",
    "PayloadOptions",
    "ResultMode",
    "ResultOptions",
    "SearchOptions",
    "ServerConfig",
    "ServerOptions",
    "Summary",
    "ToolOptions",
    "Trust",
    "cache_dir",
    "config_dir",
    "load_config",
    "load_config_dict",
    "state_database",
    "state_dir",
]

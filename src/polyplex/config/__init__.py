"""Configuration: the files users already have, as frozen structs. Knows nothing of what is done with them."""

from polyplex.config.load import load_config, load_config_dict
from polyplex.config.model import (
    Config,
    GatewayOptions,
    Isolation,
    Kind,
    ServerConfig,
    ServerOptions,
    Trust,
)
from polyplex.config.paths import cache_dir, config_dir, state_database, state_dir

__all__ = [
    "Config",
    "GatewayOptions",
    "Isolation",
    "Kind",
    "ServerConfig",
    "ServerOptions",
    "Trust",
    "cache_dir",
    "config_dir",
    "load_config",
    "load_config_dict",
    "state_database",
    "state_dir",
]

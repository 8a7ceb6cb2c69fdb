"""Folders by the XDG rules."""

import stat
from pathlib import Path

from polyplex.config.paths import cache_dir, config_dir, home, state_dir


def test_folders_follow_the_xdg_variables_and_are_private(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "s"), "XDG_CACHE_HOME": str(tmp_path / "c"), "HOME": "/nowhere"}
    assert state_dir(environ) == tmp_path / "s" / "polyplex"
    assert cache_dir(environ) == tmp_path / "c" / "polyplex"
    for folder in (state_dir(environ), cache_dir(environ)):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_without_them_they_are_in_the_home_folder(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": "relative/is/ignored"}
    assert state_dir(environ) == tmp_path / ".local" / "state" / "polyplex"
    assert cache_dir(environ) == tmp_path / ".cache" / "polyplex"


def test_the_configuration_folder_is_not_created(tmp_path: Path) -> None:
    folder = config_dir({"XDG_CONFIG_HOME": str(tmp_path)})
    assert folder == tmp_path / "polyplex"
    assert not folder.exists()


def test_home_without_the_variable_is_what_the_system_says() -> None:
    assert home({}) == Path.home()
    assert home({"HOME": "/h"}) == Path("/h")

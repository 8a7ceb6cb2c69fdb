"""Which files of the repository the rules look at."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "polyplex"


def files(*patterns: str) -> list[Path]:
    """Files of the work tree that git tracks or would track, by git pathspec."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(path for name in names if name and (path := ROOT / name).is_file())


def python_files() -> list[Path]:
    found = files("src/*.py", "tests/*.py", "scripts/*.py", "bench/*.py", "eval/*.py", "examples/*.py")
    assert found, "git lists no Python file: the rules would check nothing"
    return found


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))

import stat
import subprocess
import sys
from pathlib import Path

from polyplex.store.database import open_database

SCHEMA = "CREATE TABLE IF NOT EXISTS t (x INTEGER PRIMARY KEY)"
WRITER = """
import os, signal, sys
from pathlib import Path
from polyplex.store.database import open_database
database = open_database(Path(sys.argv[1]), sys.argv[2])
for number in range(100):
    database.execute("INSERT INTO t VALUES (?)", (number,))
    print(number, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_committed_survives_the_kill_of_the_process(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    writer = subprocess.run([sys.executable, "-c", WRITER, str(file), SCHEMA], capture_output=True, check=False)
    assert writer.returncode == -9
    database = open_database(file, SCHEMA)
    assert [row for (row,) in database.execute("SELECT x FROM t ORDER BY x")] == list(map(int, writer.stdout.split()))
    database.close()


def test_the_file_is_its_owners_alone_and_the_schema_may_run_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "state.db"
    open_database(file, SCHEMA).close()
    open_database(file, SCHEMA).close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_two_processes_may_have_it_open(tmp_path: Path) -> None:
    first, second = (open_database(tmp_path / "state.db", SCHEMA) for _ in range(2))
    first.execute("INSERT INTO t VALUES (1)")
    second.execute("INSERT INTO t VALUES (2)")
    assert first.execute("SELECT count(*) FROM t").fetchone() == (2,)
    first.close()
    second.close()


def test_in_memory_for_those_who_keep_nothing() -> None:
    database = open_database(None, SCHEMA)
    database.execute("INSERT INTO t VALUES (1)")
    assert database.execute("SELECT x FROM t").fetchall() == [(1,)]
    database.close()

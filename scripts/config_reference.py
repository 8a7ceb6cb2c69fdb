"""Write docs/reference/config.schema.json and the tables of docs/reference/config.md from the model.

Run it after a change of src/polyplex/config/model.py: `python scripts/config_reference.py`.
"""

import json
from pathlib import Path

from polyplex.config.schema import config_json_schema, config_reference

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
SCHEMA, PAGE = REFERENCE / "config.schema.json", REFERENCE / "config.md"
BEGIN = "<!-- tables: written by scripts/config_reference.py -->\n"
END = "<!-- end of tables -->\n"


def schema_text() -> str:
    """The schema file as it should be."""
    return json.dumps(config_json_schema(), indent=2, ensure_ascii=False) + "\n"


def page_text(page: str) -> str:
    """The page with its tables replaced by those of the model."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{config_reference()}\n{END}{after}"


def main() -> None:
    """Write both files."""
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

"""docs/faults.md: a row for each fault, written by the drill that made it."""

import subprocess
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/faults.md"
HEAD = """\
# Faults, in real pods

What `make test-faults` did to a job of `examples/tiny.yaml`'s shape that trained in the embedded cluster, and what its
object said. Each row was written by the drill itself.

| fault | what was done | the attempt ended as | charged | went on | seconds until it trained on | commit | date |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def record(name: str, *cells: str) -> None:
    """Writes a fault's row in the place of the one before."""
    lines = PAGE.read_text("utf-8").splitlines() if PAGE.exists() else []
    rows = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    commit = git("rev-parse", "--short", "HEAD")
    if git("status", "--porcelain", "--", ".", f":!{PAGE.relative_to(ROOT)}"):
        commit += " and changes"
    rows[name] = f"| {' | '.join([name, *cells, commit, time.strftime('%Y-%m-%d', time.gmtime())])} |"
    rows = {fault: row for fault, row in rows.items() if fault not in ("fault", "---")}
    PAGE.write_text(HEAD + "".join(f"{rows[fault]}\n" for fault in sorted(rows)), "utf-8")


def told(reason: str, message: str) -> str:
    """A reason and the first line of its sentence, as a cell."""
    line = message.splitlines()[0].replace("|", "/")
    return f"`{reason}`: {textwrap.shorten(line, 300, placeholder=' …')}"


def git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True, text=True, timeout=20)
    return done.stdout.strip()

"""Runs onefold and its peers in turn on one folder: measure.py ONEFOLD FOLDER [RUNS]. Prints a table in Markdown and fails
where they do not agree on what happens."""
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ONEFOLD, FOLDER = sys.argv[1], sys.argv[2]
RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
COMMANDS = {
    "onefold": [ONEFOLD, "--quiet", "plan", "--files", FOLDER, "--as-of", "2026-11-11T21:30:00+08:00"],
    "Polars": [sys.executable, str(HERE / "plan_polars.py"), FOLDER],
    "DuckDB": [sys.executable, str(HERE / "plan_duckdb.py"), FOLDER],
}


def run(command):
    """Its output, wall seconds, processor seconds and peak megabytes."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command[0]} ended with {child.returncode}")
    return out, time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def told(out):
    """What happens, by the report of onefold or the JSON of a peer."""
    if out.startswith("{"):
        return json.loads(out)
    patterns = {
        "kept": r"(\d+) purchases? keeps? one",
        "closed": r"(\d+) orders?\s+closed",
        "refunds": r"(\d+) refunds?",
        "released": r"(\d+) holds?\s+released",
        "quarantined": r"(\d+) messages?\s+quarantined",
    }
    found = {name: re.search(pattern, out) for name, pattern in patterns.items()}
    return {name: int(match[1]) if match else 0 for name, match in found.items()}


figures = {name: [] for name in COMMANDS}
answers = {}
for _ in range(RUNS):
    for name, command in COMMANDS.items():
        out, *used = run(command)
        figures[name].append(used)
        answers[name] = told(out)

medians = {name: [statistics.median(column) for column in zip(*runs)] for name, runs in figures.items()}
print("| plan | wall s | processor s | peak MB | wall, of Polars | memory, of Polars |\n|---|---|---|---|---|---|")
for name, runs in figures.items():
    cells = [f"{median:.2f} ({min(column):.2f}-{max(column):.2f})" for median, column in zip(medians[name], zip(*runs))]
    ratios = [f"{medians[name][i] / medians['Polars'][i]:.2f}" for i in (0, 2)]
    print(f"| {' | '.join([name, *cells, *ratios])} |")
print()
for name, answer in answers.items():
    print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in answer.items()))
if any(answer != answers["onefold"] for answer in answers.values()):
    sys.exit("they do not agree on what happens")

#!/bin/sh
# How fast a plan from files is beside the scripts that one would write instead: tests/bench.sh [ORDERS [RUNS]].
# Makes seeded ledgers of 1,000,000 orders unless it is told another number, runs onefold, Polars and DuckDB in turn,
# and prints medians, ranges, ratios and peak memory as a Markdown table. Needs python3 with venv, and the network once.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
orders=${1:-1000000}
runs=${2:-5}
work=${BENCH_DIR:-$root/target/bench}
data=$work/ledgers-$orders

mkdir -p "$work"
if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet polars duckdb
fi
if [ ! -f "$data/messages.csv" ]; then
    python3 "$root/tests/bench/generate.py" "$orders" "$data.part"
    mv "$data.part" "$data"
fi
if [ -z "${ONEFOLD:-}" ]; then
    (cd "$root" && cargo build --release --locked)
    ONEFOLD=$root/target/release/onefold
fi
echo "$orders orders, $(cat "$data"/*.csv | wc -c) bytes, $(nproc) processors, $(date -u +%Y-%m-%d)"
echo
exec "$work/venv/bin/python" "$root/tests/bench/measure.py" "$ONEFOLD" "$data" "$runs"

#!/bin/sh
# How fast onefold is beside the scripts that one would write instead: tests/bench.sh [ORDERS [RUNS]].
# Makes seeded ledgers of 1,000,000 orders unless it is told another number, runs onefold and its peers in turn, and prints
# medians, ranges, ratios and peak memory as Markdown tables: a plan from files beside Polars and DuckDB; then import, plan and
# apply on SQLite and on the servers that are named, beside their own bulk load, SQL in stages, and batches of
# compare-and-set. Needs python3 with venv, sqlite3, GNU time, and the network once.
#
#   ONEFOLD_BENCH_POSTGRES_URL=postgres://user:password@host:port/database
#   ONEFOLD_BENCH_MYSQL_URL=mysql://user:password@host:port/database
#       a server whose data are on a disk; its user must be allowed to create databases
#   BENCH_DIR   where data and databases go; target/bench unless named
#   ONEFOLD     the program; built unless named
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
orders=${1:-1000000}
runs=${2:-5}
work=${BENCH_DIR:-$root/target/bench}
data=$work/ledgers-$orders
python=$work/venv/bin/python

mkdir -p "$work"
if [ ! -x "$python" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet polars duckdb 'psycopg[binary]' pymysql
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
"$python" "$root/tests/bench/measure.py" "$ONEFOLD" "$data" "$runs"
echo
echo "| database | work | onefold | beside it | ratio |"
echo "|---|---|---|---|---|"
for url in "sqlite:$work/bench.db" "${ONEFOLD_BENCH_POSTGRES_URL:-}" "${ONEFOLD_BENCH_MYSQL_URL:-}"; do
    if [ -n "$url" ]; then
        "$python" "$root/tests/bench/databases.py" "$ONEFOLD" "$work" "$orders" "$url" "$runs"
    fi
done

#!/usr/bin/env bash
# Runs the tests, with a PostgreSQL, a MariaDB and a Redis beside them.
set -euo pipefail

usage() {
    cat <<'END'
usage: tests/run.sh [--hunt] [arguments for cargo test]

Runs `cargo test --locked --no-fail-fast` with the servers that the tests need. Three are started for
this run alone, on free ports of 127.0.0.1 and in a temporary folder (in memory where that has 3 GiB to
spare), and are gone when it ends.

  --hunt    also the long hunts: random ledgers, faults at every step, 50,000 seeds of the hunt
            for double refunds (ONEFOLD_TEST_HUNT=1)
  --help    this text

  ONEFOLD_TEST_POSTGRES_URL=postgres://user:password@host:port/database
  ONEFOLD_TEST_MYSQL_URL=mysql://user:password@host:port/database
            use this server instead of a private one; its user must be allowed to create databases
  ONEFOLD_TEST_REDIS_URL=redis://:password@host:port
            the same; keys of the tests begin with onefold and are removed

Anything else goes to cargo, for instance:
  tests/run.sh --test store
  tests/run.sh money -- --nocapture

Needs cargo, a C compiler, Chromium and promtool, and PostgreSQL 15, MariaDB 10.11 and Redis 6.2 or newer. Run as root where
apt-get is, it installs what is missing; otherwise it says what is missing and fails.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tests/tools.sh"
. "$root/tests/servers.sh"

arguments=()
while [ $# != 0 ]; do
    case $1 in
    --help | -h) usage && exit ;;
    --hunt) export ONEFOLD_TEST_HUNT=1 ;;
    --locked | --no-fail-fast) ;; # they always are, and cargo takes them only once
    --) arguments+=("$@") && break ;;
    *) arguments+=("$1") ;;
    esac
    shift
done

# shellcheck disable=SC2317
clean_up() {
    local status=$?
    trap '' INT TERM HUP
    if [ -n "${tests:-}" ]; then
        kill -TERM -- "-$tests" 2>/dev/null || true
        wait "$tests" 2>/dev/null || true
    fi
    stop_servers
    rm -rf "$dir"
    exit "$status"
}

need_cargo
need_c_compiler
need_chromium
need_promtool
dir=$(mktemp -d -p "$(roomy_folder)" onefold-tests.XXXXXX)
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$dir"
provide_servers
cd "$root"

# Most tests wait for a server or a clock most of their time: more of them run at once than there are processors.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}"

# The tests are a process group of their own, so that ending this script ends cargo and all that it started.
set -m
(cargo test --locked --no-fail-fast "${arguments[@]}" </dev/null 2>&1 | tee "$dir/output") &
tests=$!
set +m
status=0
wait "$tests" || status=$?
tests=

if [ "$status" != 0 ]; then show_dead_servers; fi
counts=$(sed -nE 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored;.*/\1 \2 \3/p' "$dir/output")
if [ -z "$counts" ]; then
    echo "no test ran" >&2
    exit "$status"
fi
awk -v status="$status" '
    { passed += $1; failed += $2; ignored += $3 }
    END {
        if (status != 0 && failed == 0) print "cargo test failed, though no test says so: see above"
        printf "%d passed, %d failed%s\n", passed, failed, ignored ? ", " ignored " skipped" : ""
    }' <<<"$counts"
exit "$status"

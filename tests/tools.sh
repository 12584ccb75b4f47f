# What a build needs before it can start. Sourced by tests/run.sh and .ci/run.

fail() {
    echo "error: $*" >&2
    exit 1
}

# apt_install WHY PACKAGE...: installs as root on Debian and its like, else says what to install.
apt_install() {
    local why=$1 log
    shift
    if [ "$(id -u)" != 0 ]; then
        fail "missing: $why; install it (Debian: apt-get install $*), or run this as root to have it installed"
    elif ! command -v apt-get >/dev/null; then
        fail "missing: $why; install it (on Debian the packages are: $*)"
    fi
    echo "missing: $why; installing $*"
    log=$(mktemp)
    # RUNLEVEL=1 keeps Debian from starting the servers that it installs: ours are private.
    if ! (apt-get -q update && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
        apt-get -q install -y --no-install-recommends "$@") </dev/null >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        fail "missing: $why; apt-get could not install $* (its last lines are above)"
    fi
    rm -f "$log"
}

need_cargo() {
    local env="${CARGO_HOME:-${HOME:-}/.cargo}/env"
    if ! command -v cargo >/dev/null && [ -r "$env" ]; then
        # shellcheck disable=SC1090
        . "$env"
    fi
    command -v cargo >/dev/null || fail "missing: cargo; install the Rust toolchain (https://rustup.rs)"
}

# SQLite is compiled from its C source.
need_c_compiler() {
    local cc
    for cc in ${CC:-} cc gcc clang; do
        if command -v "$cc" >/dev/null; then return; fi
    done
    apt_install "a C compiler (SQLite is built from C)" build-essential
}

# A report's page is looked at in it.
need_chromium() {
    local browser
    for browser in chromium chromium-browser google-chrome chrome; do
        if command -v "$browser" >/dev/null; then return; fi
    done
    apt_install "Chromium (the tests look at a report's page in it)" chromium
}

# The alerts about locks are checked by it.
need_promtool() {
    if ! command -v promtool >/dev/null; then
        apt_install "promtool (the tests check a rule file with it)" prometheus
    fi
}

# Database servers for the tests: checks those that are given, starts private ones where none are.
# Sourced by tests/run.sh, which sets `dir`, the temporary folder, and calls stop_servers at its end.
# shellcheck disable=SC2154

account=onefold
# The @ has to be escaped in a URL: so the tests see that passwords are decoded.
password="one@fold-$RANDOM$RANDOM"

server_pids=()
server_logs=()

# Where the servers' data goes: in memory where there is room, since most of what they do is make databases and drop
# them again, and what is proven is the protocol, not the disk.
roomy_folder() {
    local memory=/dev/shm free
    free=$(df --output=avail --block-size=M "$memory" 2>/dev/null | tail -n 1 | tr -dc 0-9 || true)
    if [ -w "$memory" ] && [ "${free:-0}" -ge 3072 ]; then echo "$memory"; else echo "${TMPDIR:-/tmp}"; fi
}

# check_postgres URL / check_mysql URL: logs in and makes a database, as every test will.
# Prints the server's version in its last line, or why not. Without a client program it only knocks.
check_postgres() {
    local psql database="onefold_check_$$"
    psql=${pg_bin:+$pg_bin/psql}
    psql=${psql:-$(command -v psql || true)}
    if [ -z "$psql" ]; then knock "$1" 5432; return; fi
    PGCONNECT_TIMEOUT=5 "$psql" -XAtqw -v ON_ERROR_STOP=1 "$1" -c "CREATE DATABASE $database" \
        -c "DROP DATABASE $database" -c "SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)" \
        </dev/null
}

check_mysql() {
    local client database="onefold_check_$$"
    client=$(command -v mariadb || command -v mysql || true)
    if [ -z "$client" ]; then knock "$1" 3306; return; fi
    split_url "$1" || return
    MYSQL_PWD=$url_password "$client" --no-defaults --batch --skip-column-names --connect-timeout=5 \
        --protocol=TCP --host="$url_host" --port="${url_port:-3306}" --user="${url_user:-root}" \
        --execute="CREATE DATABASE $database; DROP DATABASE $database; \
        SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), SUBSTRING_INDEX(VERSION(), '-', 1))" \
        </dev/null
}

check_redis() {
    split_url "$1" || return
    if ! command -v redis-cli >/dev/null; then knock "$1" 6379; return; fi
    local version
    version=$(REDISCLI_AUTH=$url_password timeout 5 redis-cli -h "$url_host" -p "${url_port:-6379}" --no-raw INFO server \
        </dev/null 2>&1 | grep -oE 'redis_version:[0-9.]+') || { echo "it does not answer, or wants another password"; return 1; }
    echo "Redis ${version#*:}"
}

# knock URL PORT: whether anything listens there.
knock() {
    split_url "$1" || return
    # shellcheck disable=SC2016
    timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$url_host" "${url_port:-$2}" || return
    echo "unknown version (no client program here to ask it)"
}

split_url() {
    local part='^[a-z]+://(([^:@/]*)(:([^@/]*))?@)?(\[[^]]+\]|[^]:/?[]+)(:([0-9]+))?([/?].*)?$'
    if ! [[ $1 =~ $part ]]; then
        echo "not a URL like scheme://user:password@host:port/database" >&2
        return 1
    fi
    url_user=$(percent_decode "${BASH_REMATCH[2]}")
    url_password=$(percent_decode "${BASH_REMATCH[4]}")
    url_host=${BASH_REMATCH[5]//[\[\]]/}
    url_port=${BASH_REMATCH[7]}
}

percent_decode() {
    local text=${1//\\/\\\\}
    printf '%b' "${text//%/\\x}"
}

# use_given VARIABLE CHECK: the server that the caller's URL names, or an end that says what is wrong.
use_given() {
    local answer url=${!1}
    answer=$("$2" "$url" 2>&1) ||
        fail "$1 is set to $(hide_password "$url"), which cannot be used: ${answer:-no answer}"
    echo "using $1: ${answer##*$'\n'}"
}

hide_password() {
    sed -E 's#//([^:@/]*):[^@/]*@#//\1:***@#' <<<"$1"
}

# find_postgres / find_mariadb: the newest server programs here, if they are new enough.
find_postgres() {
    local bin version
    for bin in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -Vr) "$(dirname "$(command -v postgres || echo .)")"; do
        version=$("$bin/postgres" --version 2>/dev/null | grep -oE '[0-9]+' | head -n 1) || continue
        if [ "$version" -ge 15 ] && [ -x "$bin/initdb" ] && [ -x "$bin/psql" ]; then
            pg_bin=$bin
            return
        fi
    done
    return 1
}

find_mariadb() {
    local program version
    PATH="$PATH:/usr/local/sbin:/usr/sbin"
    for program in mariadbd mariadb-install-db mariadb; do
        command -v "$program" >/dev/null || return
    done
    version=$(mariadbd --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1) || return
    [ "$(printf '%s\n' 10.11 "$version" | sort -V | head -n 1)" = 10.11 ]
}

find_redis() {
    local version
    version=$(redis-server --version 2>/dev/null | grep -oE 'v=[0-9]+\.[0-9]+' | head -n 1) || return
    [ "$(printf '%s\n' 6.2 "${version#v=}" | sort -V | head -n 1)" = 6.2 ]
}

# PostgreSQL refuses to run as root. The servers end with this script, even if it is killed.
prepare_to_start() {
    as_server=()
    if command -v setpriv >/dev/null; then as_server=(setpriv --pdeathsig=QUIT); fi
    if [ "$(id -u)" = 0 ]; then
        command -v setpriv >/dev/null || fail "missing: setpriv (Debian: apt-get install util-linux)"
        as_server+=(--reuid=nobody "--regid=$(id -gn nobody)" --clear-groups)
        chown nobody "$dir"
    fi
    as_server+=(env "HOME=$dir")
}

# start NAME SET_UP LAUNCH CHECK: leaves the server's URL in `url`. Another process may take the port
# between our look and the server's, so a start that fails is tried on other ports.
start() {
    local name=$1 set_up=$2 launch=$3 check=$4 log="$dir/$1.log" answer pid
    "$set_up" >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "$name could not be set up (its last lines are above)"; }
    for _ in 1 2 3; do
        port=$(free_port)
        "$launch"
        pid=$!
        server_pids+=("$pid")
        server_logs+=("$log")
        for _ in $(seq 300); do
            if answer=$("$check" "$url" 2>&1); then
                echo "started ${answer##*$'\n'} on port $port"
                return
            fi
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    done
    tail -n 20 "$log" >&2
    fail "$name did not start (its last lines are above): $answer"
}

free_port() {
    local candidate
    while :; do
        candidate=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null || break
    done
    echo "$candidate"
}

# People's databases compare text by language, not by bytes; so does this one, to find out a query that relies on bytes.
# The password goes over as it is: SCRAM has the client hash it some thousand times for each connection, which costs a
# debug build 60 ms.
set_up_postgres() {
    "${as_server[@]}" "$pg_bin/initdb" --pgdata="$dir/postgres" --username=postgres --auth-local=trust \
        --auth-host=password --encoding=UTF8 --locale=C --locale-provider=icu --icu-locale=en-US --no-sync
    # A test drops its database at once, also where a session of a user that it made has not ended yet.
    printf '%s\n' "CREATE ROLE $account LOGIN CREATEDB CREATEROLE IN ROLE pg_signal_backend PASSWORD '$password';" \
        "CREATE DATABASE $account OWNER $account;" |
        "${as_server[@]}" "$pg_bin/postgres" --single -D "$dir/postgres" postgres
}

launch_postgres() {
    url="postgres://$account:${password/@/%40}@127.0.0.1:$port/$account"
    "${as_server[@]}" "$pg_bin/postgres" -D "$dir/postgres" -p "$port" -k "$dir" -c listen_addresses=127.0.0.1 \
        -c autovacuum=off -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200 \
        </dev/null >>"$dir/PostgreSQL.log" 2>&1 &
}

set_up_mariadb() {
    "${as_server[@]}" mariadb-install-db --no-defaults --datadir="$dir/mariadb" --skip-test-db \
        --auth-root-authentication-method=socket --auth-root-socket-user=nobody
    printf '%s\n' "CREATE DATABASE IF NOT EXISTS $account;" \
        "CREATE USER IF NOT EXISTS $account@'%' IDENTIFIED BY '$password';" \
        "GRANT ALL ON *.* TO $account@'%' WITH GRANT OPTION;" >"$dir/mariadb.sql"
}

launch_mariadb() {
    url="mysql://$account:${password/@/%40}@127.0.0.1:$port/$account"
    "${as_server[@]}" mariadbd --no-defaults --datadir="$dir/mariadb" --socket="$dir/mariadb.sock" --port="$port" \
        --bind-address=127.0.0.1 --skip-name-resolve --init-file="$dir/mariadb.sql" --pid-file="$dir/mariadb.pid" \
        --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci --skip-log-bin \
        --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --max-connections=200 \
        </dev/null >>"$dir/MariaDB.log" 2>&1 &
}

# Its password is in a file: anybody may read the list of processes.
set_up_redis() {
    printf '%s\n' "requirepass $password" 'save ""' "appendonly no" "bind 127.0.0.1" "dir $dir" >"$dir/redis.conf"
    if [ "$(id -u)" = 0 ]; then chown nobody "$dir/redis.conf"; fi
    chmod 600 "$dir/redis.conf"
}

launch_redis() {
    url="redis://:${password/@/%40}@127.0.0.1:$port"
    # It takes no notice of QUIT.
    "${as_server[@]/QUIT/TERM}" redis-server "$dir/redis.conf" --port "$port" </dev/null >>"$dir/Redis.log" 2>&1 &
}

# provide_servers: leaves their URLs in the environment.
provide_servers() {
    local missing=() packages=() why
    if [ -z "${ONEFOLD_TEST_POSTGRES_URL:-}" ] && ! find_postgres; then
        missing+=("PostgreSQL 15 or newer (or set ONEFOLD_TEST_POSTGRES_URL)")
        packages+=(postgresql)
    fi
    if [ -z "${ONEFOLD_TEST_MYSQL_URL:-}" ] && ! find_mariadb; then
        missing+=("MariaDB 10.11 or newer (or set ONEFOLD_TEST_MYSQL_URL)")
        packages+=(mariadb-server mariadb-client)
    fi
    if [ -z "${ONEFOLD_TEST_REDIS_URL:-}" ] && ! find_redis; then
        missing+=("Redis 6.2 or newer (or set ONEFOLD_TEST_REDIS_URL)")
        packages+=(redis-server)
    fi
    if [ ${#missing[@]} != 0 ]; then
        printf -v why '%s, ' "${missing[@]}"
        apt_install "${why%, }" "${packages[@]}"
    fi

    prepare_to_start
    if [ -n "${ONEFOLD_TEST_POSTGRES_URL:-}" ]; then
        use_given ONEFOLD_TEST_POSTGRES_URL check_postgres
    else
        find_postgres || fail "the PostgreSQL found here is older than 15"
        start PostgreSQL set_up_postgres launch_postgres check_postgres
        ONEFOLD_TEST_POSTGRES_URL=$url
    fi
    if [ -n "${ONEFOLD_TEST_MYSQL_URL:-}" ]; then
        use_given ONEFOLD_TEST_MYSQL_URL check_mysql
    else
        find_mariadb || fail "the MariaDB found here is older than 10.11"
        start MariaDB set_up_mariadb launch_mariadb check_mysql
        ONEFOLD_TEST_MYSQL_URL=$url
    fi
    if [ -n "${ONEFOLD_TEST_REDIS_URL:-}" ]; then
        use_given ONEFOLD_TEST_REDIS_URL check_redis
    else
        find_redis || fail "the Redis found here is older than 6.2"
        start Redis set_up_redis launch_redis check_redis
        ONEFOLD_TEST_REDIS_URL=$url
    fi
    export ONEFOLD_TEST_POSTGRES_URL ONEFOLD_TEST_MYSQL_URL ONEFOLD_TEST_REDIS_URL
}

# Shows what a server said last if it died under the tests.
show_dead_servers() {
    local i
    for i in "${!server_pids[@]}"; do
        if ! kill -0 "${server_pids[i]}" 2>/dev/null; then
            echo "a server died during the tests; its last lines ($(basename "${server_logs[i]}")):" >&2
            tail -n 20 "${server_logs[i]}" >&2
        fi
    done
}

# Nothing of theirs is kept, so they may go at once. QUIT lets PostgreSQL end its children and its shared memory;
# Redis takes no notice of it.
stop_servers() {
    local pid
    for pid in "${server_pids[@]}"; do kill -QUIT "$pid" 2>/dev/null || true; done
    for pid in "${server_pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
    for pid in "${server_pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}

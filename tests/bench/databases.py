"""Runs onefold and what one would write instead in turn on one database: databases.py ONEFOLD FOLDER ORDERS URL [RUNS],
where URL is sqlite:FILE, postgres://… or mysql://… of a server on which databases may be made. Prints a table in Markdown, and
fails where they do not agree on what happens. The databases that it makes are named onefold_bench, and gone when it ends."""
import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stages import SQL, STAGES

HERE = Path(__file__).parent
ONEFOLD, WORK, ORDERS, URL = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
RUNS = int(sys.argv[5]) if len(sys.argv) > 5 else 5
NAME = "onefold_bench"
# A column whose name ends in # holds whole numbers.
LEDGERS = {
    "orders": "order_id tenant_id user_id show_id session_id idempotency_key item quantity# amount_minor# currency status "
    "source trace_id created_at version",
    "payments": "payment_id tenant_id order_id user_id show_id session_id amount_minor# refunded_minor# currency provider "
    "provider_txn_id status created_at captured_at version",
    "inventory": "hold_id tenant_id order_id user_id show_id session_id item quantity# status created_at expires_at version",
    "messages": "message_id tenant_id message_key topic order_id user_id show_id session_id status attempts# trace_id "
    "created_at version",
}
# How many orders the peer of apply moves, and how many in one transaction.
MOVED, BATCH = 50_000, 1_000


class Sqlite:
    label, analyze = "SQLite", "ANALYZE"

    def __init__(self, url):
        self.file = Path(url.removeprefix("sqlite:"))
        self.url = f"sqlite:{self.file}.{NAME}"

    def make(self):
        pass

    def drop(self):
        for end in ("", "-wal", "-shm"):
            Path(f"{self.file}.{NAME}{end}").unlink(missing_ok=True)

    def connect(self):
        connection = sqlite3.connect(f"{self.file}.{NAME}", isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -1000000"):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def load(self, folder):
        script = [".mode csv", *(f".import --skip 1 {folder}/{ledger}.csv {ledger}" for ledger in LEDGERS)]
        subprocess.run(["sqlite3", f"{self.file}.{NAME}"], input="\n".join(script), text=True, check=True)

    def move(self, cursor, ids):
        cursor.execute("BEGIN IMMEDIATE")
        cursor.executemany(
            "UPDATE bench_orders SET status = 'CANCELLED', version = '2' "
            "WHERE order_id = ? AND status = 'PENDING_PAYMENT' AND version = '1'",
            [(id,) for id in ids],
        )
        moved = cursor.rowcount
        cursor.executemany(
            "INSERT INTO bench_journal VALUES ('plan', ?, 'PENDING_PAYMENT', 'CANCELLED', '1')", [(id,) for id in ids]
        )
        cursor.execute("COMMIT")
        return moved


class Server:
    def __init__(self, url):
        self.base = urlsplit(url)
        self.url = self.base._replace(path=f"/{NAME}").geturl()

    def make(self):
        with closing(self.connect(self.base.path.strip("/"))) as connection:
            connection.cursor().execute(f"CREATE DATABASE {NAME}")

    def drop(self):
        with closing(self.connect(self.base.path.strip("/"))) as connection:
            connection.cursor().execute(f"DROP DATABASE IF EXISTS {NAME}")


class Postgres(Server):
    label, analyze = "PostgreSQL", "ANALYZE"

    def connect(self, name=NAME):
        import psycopg

        return psycopg.connect(self.base._replace(path=f"/{name}").geturl(), autocommit=True)

    def load(self, folder):
        for ledger in LEDGERS:
            copy = f"\\copy {ledger} FROM '{folder}/{ledger}.csv' (FORMAT csv, HEADER)"
            subprocess.run(["psql", "-qX", self.url, "-c", copy], check=True)

    def move(self, cursor, ids):
        cursor.execute(
            "WITH moved AS (UPDATE bench_orders SET status = 'CANCELLED', version = '2' "
            "WHERE order_id = ANY (%s) AND status = 'PENDING_PAYMENT' AND version = '1' RETURNING order_id) "
            "INSERT INTO bench_journal SELECT 'plan', order_id, 'PENDING_PAYMENT', 'CANCELLED', '1' FROM moved",
            [ids],
        )
        return cursor.rowcount


class Mysql(Server):
    label, analyze = "MariaDB", "ANALYZE TABLE"

    def connect(self, name=NAME):
        import pymysql

        password = unquote(self.base.password or "")
        return pymysql.connect(
            host=self.base.hostname, port=self.base.port or 3306, user=self.base.username, password=password, database=name,
            autocommit=True, local_infile=True, client_flag=pymysql.constants.CLIENT.FOUND_ROWS,
        )

    def load(self, folder):
        with closing(self.connect()) as connection:
            for ledger in LEDGERS:
                connection.cursor().execute(
                    f"LOAD DATA LOCAL INFILE '{folder}/{ledger}.csv' INTO TABLE {ledger} FIELDS TERMINATED BY ',' IGNORE 1 LINES"
                )

    def move(self, cursor, ids):
        marks = ", ".join(["%s"] * len(ids))
        cursor.execute("BEGIN")
        moved = cursor.execute(
            "UPDATE bench_orders SET status = 'CANCELLED', version = '2' "
            f"WHERE order_id IN ({marks}) AND status = 'PENDING_PAYMENT' AND version = '1'",
            ids,
        )
        rows = ", ".join(["('plan', %s, 'PENDING_PAYMENT', 'CANCELLED', '1')"] * len(ids))
        cursor.execute(f"INSERT INTO bench_journal VALUES {rows}", ids)
        cursor.execute("COMMIT")
        return moved


def onefold(*words):
    """What it says, wall seconds, and peak megabytes."""
    env = {**os.environ, "ONEFOLD_DATABASE_URL": database.url, "ONEFOLD_ACTOR": "bench"}
    peak = WORK / "peak"
    # What we start ourselves is said to have been as large as we are.
    measured = ["time", "--quiet", "--format", "%M", "--output", peak]
    begin = time.monotonic()
    child = subprocess.run([*measured, ONEFOLD, "--quiet", *words], stdout=subprocess.PIPE, text=True, env=env)
    seconds = time.monotonic() - begin
    # With 6 apply says that the services have still to carry out what stands in the outbox.
    if child.returncode not in ((0, 6) if words[0] == "apply" else (0,)):
        sys.exit(f"onefold {' '.join(words)} ended with {child.returncode}")
    return child.stdout, seconds, int(peak.read_text()) / 1024


def timed(work, *words):
    begin = time.monotonic()
    told = work(*words)
    return told, time.monotonic() - begin


def plain_tables():
    """The four ledgers as the files have them, without an index."""
    with closing(database.connect()) as connection:
        for ledger, columns in LEDGERS.items():
            typed = (f"{c[:-1]} bigint" if c.endswith("#") else f"{c} varchar(200)" for c in columns.split())
            connection.cursor().execute(f"CREATE TABLE {ledger} ({', '.join(typed)})")


def peer_plan(scope=""):
    """What happens, by SQL in stages."""
    script = SQL.replace("{scope}", scope).replace("{analyze}", database.analyze)
    with closing(database.connect()) as connection:
        cursor = connection.cursor()
        for statement in filter(str.strip, script.split(";")):
            cursor.execute(statement)
        told = dict(zip(["kept", "closed", "refunds", "released", "quarantined"], map(int, cursor.fetchone())))
        for stage in STAGES:
            cursor.execute(f"DROP TABLE bench_{stage}")
    return told


def own_plan(plan):
    """What happens, by the steps of purchases of several live orders, as the peer tells it."""
    told = dict.fromkeys(["kept", "closed", "refunds", "released", "quarantined"], 0)
    closed = {"CANCELLED", "REFUNDED"}
    for intent in plan["intents"]:
        if intent["outcome"] != "KEEP" or len(intent["orders"]) < 2:
            continue
        told["kept"] += 1
        for step in intent["steps"]:
            ledger, to = step["ledger"], step["to"]
            told["closed"] += ledger == "orders" and to in closed
            told["refunds"] += ledger == "payments" and to == "REFUNDED"
            told["released"] += ledger == "inventory"
            told["quarantined"] += ledger == "messages"
    return told


def peer_apply():
    """Compare-and-set of one order and a row in a journal, so many in one transaction: how many a second."""
    with closing(database.connect()) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE bench_orders AS SELECT * FROM orders")
        cursor.execute("UPDATE bench_orders SET status = 'PENDING_PAYMENT', version = '1'")
        cursor.execute("CREATE UNIQUE INDEX bench_orders_by_id ON bench_orders (order_id)")
        cursor.execute("CREATE TABLE bench_journal (plan_id varchar(64), order_id varchar(64), was varchar(40), "
                       "becomes varchar(40), version varchar(64))")
        cursor.execute("SELECT order_id FROM orders")
        ids = [row[0] for row in cursor.fetchall()]
        random.Random(2026).shuffle(ids)
        ids = ids[:MOVED]
        begin = time.monotonic()
        moved = sum(database.move(cursor, ids[at:at + BATCH]) for at in range(0, len(ids), BATCH))
        seconds = time.monotonic() - begin
        if moved != len(ids):
            sys.exit(f"{moved} of {len(ids)} orders were moved")
        cursor.execute("DROP TABLE bench_orders")
        cursor.execute("DROP TABLE bench_journal")
    return moved / seconds


def run(figures):
    begin = datetime.now(timezone(timedelta(hours=8))).replace(microsecond=0) - timedelta(minutes=61)
    folder = WORK / f"recent-{ORDERS}"
    subprocess.run([sys.executable, HERE / "generate.py", str(ORDERS), folder, begin.isoformat()], check=True)
    note = lambda work, who, figure: figures.setdefault(work, {}).setdefault(who, []).append(figure)

    database.drop()
    database.make()
    plain_tables()
    note("import, s", "peer", timed(database.load, folder)[1])
    database.drop()
    database.make()
    _, seconds, peak = onefold("import", str(folder))
    note("import, s", "onefold", seconds)
    note("import, peak MB", "onefold", peak)

    peers, seconds = timed(peer_plan)
    note("plan, s", "peer", seconds)
    as_of = ("--as-of", (begin + timedelta(minutes=61)).isoformat())
    _, seconds, peak = onefold("plan", *as_of)
    note("plan, s", "onefold", seconds)
    note("plan, peak MB", "onefold", peak)
    own = own_plan(json.loads(onefold("plan", "--json", *as_of)[0]))
    if own != peers:
        sys.exit(f"they do not agree on what happens:\n{own}\n{peers}")

    since = begin + timedelta(minutes=20)
    until = since + timedelta(minutes=10)
    micros = (int(since.timestamp() * 1e6), int(until.timestamp() * 1e6))
    scope = f"AND show_id = 'SHOW-0001' AND created_at_us >= {micros[0]} AND created_at_us < {micros[1]}"
    note("plan of a show and ten minutes, s", "peer", timed(peer_plan, scope)[1])
    scope = ["--show", "SHOW-0001", "--from", since.isoformat(), "--to", until.isoformat()]
    note("plan of a show and ten minutes, s", "onefold", onefold("plan", *scope, *as_of)[1])

    note("start-up, s", "peer", timed(subprocess.run, "true")[1])
    note("start-up, s", "onefold", onefold("status")[1])
    note("apply, transitions/s", "peer", peer_apply())
    onefold("freeze", "--tenant", "default", "--advisory", "--reason", "bench")
    plan_id = json.loads(onefold("plan", "--json")[0])["plan_id"]
    # Refunds are asked of the company's own service, on SQLite too.
    config = WORK / "outbox.toml"
    config.write_text('[providers."*"]\nkind = "outbox"\n')
    limits = ("--max-refund-total", "CNY:1000000000.00")
    told, seconds, peak = onefold("apply", plan_id, "--config", config, "--yes", "--json", *limits)
    note("apply, transitions/s", "onefold", json.loads(told)["done_now"] / seconds)
    note("apply, peak MB", "onefold", peak)
    database.drop()


kinds = {"sqlite": Sqlite, "postgres": Postgres, "postgresql": Postgres, "mysql": Mysql}
database = kinds[URL.split(":")[0]](URL)
figures = {}
try:
    for _ in range(RUNS):
        run(figures)
finally:
    database.drop()
shown = lambda runs: f"{statistics.median(runs):,.2f} ({min(runs):,.2f}-{max(runs):,.2f})"
for work, of in figures.items():
    ratio = f"{statistics.median(of['onefold']) / statistics.median(of['peer']):.2f}" if "peer" in of else ""
    print(f"| {database.label} | {work} | {shown(of['onefold'])} | {shown(of['peer']) if 'peer' in of else ''} | {ratio} |")

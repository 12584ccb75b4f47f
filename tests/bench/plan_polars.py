"""The core of a plan in Polars: plan_polars.py FOLDER. Prints what happens, as JSON."""
import json
import sys

import polars as pl

col = pl.col
KEY = ["tenant_id", "user_id", "show_id", "session_id"]


def scan(ledger, columns):
    return pl.scan_csv(f"{sys.argv[1]}/{ledger}.csv", infer_schema=False).select(columns)


def time(name):
    return col(name).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", time_unit="us")


live = scan("orders", ["order_id", *KEY, "quantity", "amount_minor", "status", "created_at"]).filter(
    col("status").is_in(["PENDING_PAYMENT", "PAID", "TICKETED"])
)
several = live.group_by(KEY).len().filter(col("len") > 1).select(KEY)
orders = live.join(several, on=KEY, nulls_equal=True).with_columns(
    time("created_at"), col("quantity", "amount_minor").cast(pl.Int64)
)
gap = col("created_at").diff() > pl.duration(minutes=2)
orders = orders.sort(*KEY, "created_at", "order_id").with_columns(gap.fill_null(False).cum_sum().over(KEY).alias("window"))
orders = orders.filter(pl.len().over([*KEY, "window"]) > 1).collect().lazy()

charges = scan("payments", ["order_id", "amount_minor", "refunded_minor", "status", "captured_at"])
charges = charges.filter(col("status") == "CAPTURED").join(orders.select("order_id"), on="order_id")
charges = charges.with_columns(col("amount_minor", "refunded_minor").cast(pl.Int64), time("captured_at"))
charges = charges.filter(col("amount_minor") > col("refunded_minor")).collect().lazy()
holds = scan("inventory", ["order_id", "quantity", "status", "expires_at"]).filter(col("status").is_in(["HELD", "CONFIRMED"]))
holds = holds.join(orders.select("order_id"), on="order_id").with_columns(col("quantity").cast(pl.Int64)).collect().lazy()
messages = scan("messages", ["order_id", "status"]).filter(col("status").is_in(["QUEUED", "IN_FLIGHT", "DEAD"]))

paid = charges.group_by("order_id").agg(col("amount_minor").sum().alias("paid"), col("captured_at").max().alias("paid_at"))
held = holds.group_by("order_id").agg(col("quantity").sum().alias("held"))
orders = orders.join(paid, on="order_id", how="left").join(held, on="order_id", how="left")
fits = (col("paid") >= col("amount_minor")) & (col("held") >= col("quantity"))
kept = orders.filter(fits).sort("paid_at", "created_at", "order_id").group_by([*KEY, "window"], maintain_order=True).first().collect().lazy()
lost = orders.join(kept.select(*KEY, "window"), on=[*KEY, "window"], nulls_equal=True)
lost = lost.join(kept.select("order_id"), on="order_id", how="anti").select("order_id").collect().lazy()

counts = [kept.select(pl.len()), lost.select(pl.len())]
counts += [rows.join(lost, on="order_id").select(pl.len()) for rows in (charges, holds, messages)]
names = ["kept", "closed", "refunds", "released", "quarantined"]
print(json.dumps(dict(zip(names, (frame.item() for frame in pl.collect_all(counts))))))

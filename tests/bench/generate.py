#!/usr/bin/env python3
"""Writes four ledgers as CSV after a sale with retries: generate.py ORDERS FOLDER [BEGIN]. Seeded: the same number gives the
same bytes. BEGIN, as 2026-11-11T20:00:00+08:00, is when the sale of one hour began.

Nine purchases in ten are one order. The others are two to eight orders that one session made within seconds; the first is
paid and backed, of the rest some were paid too, all hold stock and most have a message that still waits."""
import random
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

HEADS = {
    "orders": "order_id,tenant_id,user_id,show_id,session_id,idempotency_key,item,quantity,amount_minor,currency,status,"
    "source,trace_id,created_at,version",
    "payments": "payment_id,tenant_id,order_id,user_id,show_id,session_id,amount_minor,refunded_minor,currency,provider,"
    "provider_txn_id,status,created_at,captured_at,version",
    "inventory": "hold_id,tenant_id,order_id,user_id,show_id,session_id,item,quantity,status,created_at,expires_at,version",
    "messages": "message_id,tenant_id,message_key,topic,order_id,user_id,show_id,session_id,status,attempts,trace_id,"
    "created_at,version",
}
BEGIN = datetime(2026, 11, 11, 20, 0, tzinfo=timezone(timedelta(hours=8)))
SALE_SECONDS = 3600


def main(orders, folder, begin):
    dice = random.Random(2026)
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: (folder / f"{name}.csv").open("w", buffering=1 << 20) for name in HEADS}
    for name, head in HEADS.items():
        files[name].write(head + "\n")
    counts = dict.fromkeys(HEADS, 0)

    def row(ledger, prefix, *cells):
        counts[ledger] += 1
        files[ledger].write(f"{prefix}-{counts[ledger]:08d},default,{','.join(map(str, cells))}\n")

    purchase = 0
    while counts["orders"] < orders:
        purchase += 1
        retries = dice.randint(2, 8) if dice.random() < 0.03 else 1
        owner = f"U-{purchase:08d},SHOW-{dice.randint(1, 8):04d},S-{purchase:08d}"
        item, quantity, price = dice.choice("ABCD"), dice.randint(1, 4), dice.choice((18000, 36000, 68000))
        at = begin + timedelta(microseconds=purchase * SALE_SECONDS * 1_000_000 // orders)
        for nth in range(min(retries, orders - counts["orders"])):
            at += timedelta(microseconds=dice.randint(500_000, 4_000_000))
            first = retries > 1 and nth == 0
            paid = first or dice.random() < (0.7 if retries == 1 else 0.04)
            lost = retries == 1 and not paid and dice.random() < 0.4
            status = "PAID" if paid else "CANCELLED" if lost else "PENDING_PAYMENT"
            order, trace = f"O-{counts['orders'] + 1:08d}", f"tr-{dice.getrandbits(64):016x}"
            amount, written = price * quantity, at.isoformat()
            row("orders", "O", owner, "", item, quantity, amount, "CNY", status, "app", trace, written, 1)
            if paid:
                captured = (at + timedelta(seconds=2)).isoformat()
                txn = f"T-{counts['payments'] + 1:08d}"
                row("payments", "P", order, owner, amount, 0, "CNY", "wechat", txn, "CAPTURED", written, captured, 1)
            if not lost:
                row("inventory", "H", order, owner, item, quantity, "CONFIRMED" if paid else "HELD", written, "", 1)
            topics = ["order.created", "payment.request"] + (["inventory.confirm", "ticket.issue"] if paid else [])
            for topic in topics:
                waits = retries > 1 and not first and topic == "payment.request" and dice.random() < 0.6
                row("messages", "M", order, topic, order, owner, "QUEUED" if waits else "CONSUMED", 1, trace, written, 1)
    for file in files.values():
        file.close()


main(int(sys.argv[1]), Path(sys.argv[2]), datetime.fromisoformat(sys.argv[3]) if len(sys.argv) > 3 else BEGIN)

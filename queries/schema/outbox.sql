-- Beside the payment ledger: requests to the company's own payment service, and its answers. Types as in ledgers.sql.
-- Safe to run twice.
--
-- onefold adds a row (REQUESTED) in the transaction that moves the payment to REFUNDING or VOIDING. The service takes
-- it (TAKEN, or left REQUESTED), does what it asks under request_key as its own idempotency key, and answers in the
-- same row: state DONE or REFUSED, provider_ref, answered_at_us, and for REFUSED why in note. onefold reads the answer
-- with `converge` and moves the payment then.
--
-- A row of kind QUERY asks about the charge itself. The service answers it with state DONE and charge_status:
-- AUTHORIZED, CAPTURED (with charge_amount_minor, charge_refunded_minor, and charge_captured_at_us where it knows it;
-- refund_refused is 1 where a refund was asked for and refused), FAILED, VOIDED, DISPUTED, CHARGED_BACK, or NOT_KNOWN.
-- Rows stay where they are, also when they are worked off: a request whose row is gone is UNKNOWN for ever, until a
-- person settles it.
--
-- onefold marks an answer that it has used (READ), and asks anew when it is asked again; also where answered_at_us is
-- missing or an hour old.
CREATE TABLE IF NOT EXISTS onefold_outbox (
    request_key           {id} NOT NULL PRIMARY KEY,
    kind                  {text} NOT NULL,
    tenant_id             {id} NOT NULL,
    payment_id            {id} NOT NULL,
    provider              {id} NOT NULL,
    provider_txn_id       {id},
    amount_minor          BIGINT,
    currency              {text} NOT NULL,
    reason                {long} NOT NULL,
    requested_at_us       BIGINT NOT NULL,
    state                 {text} NOT NULL,
    provider_ref          {text},
    answered_at_us        BIGINT,
    note                  {long},
    charge_status         {text},
    charge_amount_minor   BIGINT,
    charge_refunded_minor BIGINT,
    charge_captured_at_us BIGINT,
    refund_refused        BIGINT
);
CREATE INDEX IF NOT EXISTS onefold_outbox_by_state ON onefold_outbox (state, requested_at_us);
CREATE INDEX IF NOT EXISTS onefold_outbox_by_payment ON onefold_outbox (tenant_id, payment_id, kind);

// What old receipts need before they become sums of their day. `receipt_exports` has the days that were written to files: `state` is
// 'exporting', 'exported' or 'summed'. A receipt that comes for a day that was exported takes that day's export back.
//
// On Postgres `folded_receipts` keeps the ids of receipts that became sums, because a node may write a receipt a second time, from its file
// of an outage. `check_receipt` is the function of a trigger that the first node which needs it makes (src/store/ledger/ReceiptDays.ts), as
// it makes the tables of single days, which inherit from `usage_ledger`. The version before works beside all this: it writes to
// `usage_ledger` itself, where the trigger sees it, and what it reads and deletes there includes the tables of days.
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const onPostgres = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE folded_receipts (
    receipt_id TEXT PRIMARY KEY,
    day_ms BIGINT NOT NULL
  )`
  yield* sql`CREATE INDEX folded_receipts_by_day ON folded_receipts (day_ms)`

  yield* sql`CREATE FUNCTION check_receipt() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
      IF EXISTS (SELECT 1 FROM folded_receipts WHERE receipt_id = NEW.receipt_id)
         OR EXISTS (SELECT 1 FROM usage_ledger WHERE receipt_id = NEW.receipt_id) THEN
        RETURN NULL;
      END IF;
      DELETE FROM receipt_exports WHERE day_ms = NEW.at_ms - NEW.at_ms % 86400000;
      RETURN NEW;
    END $$`
})

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  yield* sql`CREATE TABLE receipt_exports (
    day_ms BIGINT PRIMARY KEY,
    export_id TEXT NOT NULL,
    receipts BIGINT NOT NULL,
    state TEXT NOT NULL
  )`

  yield* sql.onDialectOrElse({
    pg: () => onPostgres,
    orElse: () => sql`
      CREATE TRIGGER late_receipt AFTER INSERT ON usage_ledger
      WHEN EXISTS (SELECT 1 FROM receipt_exports WHERE day_ms = NEW.at_ms - NEW.at_ms % 86400000)
      BEGIN
        DELETE FROM receipt_exports WHERE day_ms = NEW.at_ms - NEW.at_ms % 86400000;
      END`,
  })
})

// GET /v1/usage: whose credential this is, what its organization has left, and its newest receipts. The sums of a longer
// time are read with `edgewise usage`: summing them here would hold the event loop.
import { Clock, Effect, Schema } from "effect"
import { ModelKind } from "#domain/models/ModelEntry.ts"
import type { UsageReceipt } from "#domain/models/Usage.ts"
import { Caller } from "#services/Caller.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"

/** Receipts of one answer at most. A guess: a page of them. */
const mostReceipts = 100

/** Only receipts of this time are listed. */
const listedMs = 24 * 60 * 60 * 1000

const ReceiptRecord = Schema.Struct({
  receipt_id: Schema.String,
  /** Unix time. */
  created: Schema.Int,
  model: Schema.String,
  kind: ModelKind,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  audio_ms: Schema.Int,
  micro_dollars: Schema.Int,
})

export const UsageRecord = Schema.Struct({
  object: Schema.Literal("usage"),
  organization: Schema.String,
  user: Schema.String,
  /** What the credential may call (protocol 2.3). */
  scope: Schema.Literals(["read-write", "superadmin"]),
  /** What is left, or below 0 what an organization with a payment method owes. */
  balance_micro_dollars: Schema.Int,
  payment_method: Schema.Boolean,
  /** Newest first. */
  receipts: Schema.Array(ReceiptRecord),
})

const recordOf = (receipt: UsageReceipt): typeof ReceiptRecord.Type => ({
  receipt_id: receipt.receiptId,
  created: Math.floor(receipt.atMs / 1000),
  model: receipt.model,
  kind: receipt.kind,
  input_tokens: receipt.inputTokens,
  output_tokens: receipt.outputTokens,
  audio_ms: receipt.audioMs,
  micro_dollars: receipt.microDollars,
})

/** A store that fails is a defect, which the listener answers with 503. */
export const usage = Effect.fn("Operations.usage")(function* (query: { readonly receipt_id?: string }) {
  const { orgId, orgName, scope, userName } = yield* Caller
  const ledger = yield* UsageLedger
  const id = query.receipt_id ?? ""
  const sinceMs = (yield* Clock.currentTimeMillis) - listedMs
  const { balance, receipts } = yield* Effect.orDie(
    Effect.all({
      receipts: id === "" ? ledger.receipts(orgId, sinceMs, mostReceipts) : ledger.receipt(orgId, id),
      balance: ledger.balance(orgId),
    }),
  )
  const record: typeof UsageRecord.Type = {
    object: "usage",
    organization: orgName,
    user: userName,
    scope,
    balance_micro_dollars: balance.credits,
    payment_method: balance.paymentMethod,
    receipts: receipts.map(recordOf),
  }
  return record
})

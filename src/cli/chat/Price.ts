// What an answer cost, from its receipt (protocol 5.6).
import { Effect, Option, Schema } from "effect"
import type { NodeAccess } from "../shared/NodeClient.ts"
import { getText } from "../shared/NodeReplies.ts"

const Receipts = Schema.Struct({ receipts: Schema.Array(Schema.Struct({ micro_dollars: Schema.Finite })) })
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Receipts))

/** A receipt is written a moment after the last byte of its answer. Waits in milliseconds; guesses. */
const tries = [30, 150, 500]

/** Micro-dollars; undefined if there is no receipt in time, or the server is not edgewise. */
export const priceOf = (
  access: NodeAccess,
  receiptId: string | undefined,
): Effect.Effect<number | undefined> =>
  Effect.gen(function* () {
    if (receiptId === undefined) return undefined
    for (const waitMs of tries) {
      yield* Effect.sleep(waitMs)
      const text = yield* Effect.scoped(
        getText(access, `/v1/usage?receipt_id=${encodeURIComponent(receiptId)}`),
      )
      const [receipt] = Option.getOrElse(decode(text), () => ({ receipts: [] })).receipts
      if (receipt !== undefined) return receipt.micro_dollars
    }
    return undefined
  }).pipe(Effect.orElseSucceed(() => undefined))

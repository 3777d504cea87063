// The charges of an organization, read from its receipts.
import { Effect } from "effect"
import type { UsageReceipt } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import type { TestNode } from "./TestNode.ts"

/** All receipts of an organization, the newest first. Writes queued receipts first. */
export const receiptsOf = (node: TestNode, org: string): Promise<ReadonlyArray<UsageReceipt>> =>
  node.run(
    Effect.gen(function* () {
      const { id } = yield* (yield* Accounts).showOrg(org)
      return yield* (yield* UsageLedger).receipts(id, 0, 10_000)
    }),
  )

/** Requests of text models that an organization was charged for. */
export const textRequestsOf = (node: TestNode, org: string): Promise<number> =>
  node.run(
    Effect.gen(function* () {
      const { id } = yield* (yield* Accounts).showOrg(org)
      const rows = (yield* (yield* UsageLedger).usage(id, 0)).filter(({ kind }) => kind === "text")
      return rows.reduce((all, { requests }) => all + requests, 0)
    }),
  )

/** Creates an organization with this credit and a key of it. */
export const orgWith = (node: TestNode, name: string, creditsMicroDollars: number): Promise<string> =>
  node.run(
    Effect.gen(function* () {
      const accounts = yield* Accounts
      yield* accounts.createOrg({ name, creditsMicroDollars })
      return (yield* accounts.createKey({ org: name })).apiKey
    }),
  )

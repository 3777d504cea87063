// GET /v1/node/tree: the supervision tree as it is at this moment, for operators. Bounded: 100 children of each node.
import { Clock, Effect, Schema } from "effect"
import { NodeTree } from "#actors/NodeTree.ts"
import { readTree, type TreeReading } from "#actors/TreeNode.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { timestamp } from "./Health.ts"
import { operator } from "./Operations.ts"

/** More of a node's children are counted and not listed. A guess: more models than that is rare, more live sessions is not. */
const mostChildren = 100

/** A node of the tree. */
export interface TreeRecord {
  readonly name: string
  readonly kind: string
  readonly state: string
  readonly age_seconds: number
  readonly restarts: number
  readonly mailbox: { readonly depth: number; readonly bound: number } | null
  readonly holds: {
    readonly memory_bytes?: number
    readonly threads?: number
    readonly sessions?: number
    readonly requests?: number
  }
  readonly gave_up: ReadonlyArray<{
    readonly name: string
    readonly seconds_ago: number
    readonly restarts: number
    readonly reason: string
    readonly outcome: string
    readonly recovered: boolean
  }>
  readonly children_total: number
  readonly children: ReadonlyArray<TreeRecord>
}

export const TreeRecord = Schema.Struct({
  name: Schema.String,
  /** `supervisor`, `store`, `worker`, `device`, `model`, `engine`, `session` or `job`. */
  kind: Schema.String,
  state: Schema.String,
  /** Since its start or latest restart. */
  age_seconds: Schema.Finite,
  restarts: Schema.Int,
  /** Messages that wait, and how many may; of an engine, requests. Null where it has no mailbox. */
  mailbox: Schema.NullOr(Schema.Struct({ depth: Schema.Int, bound: Schema.Int })),
  holds: Schema.Struct({
    memory_bytes: Schema.optionalKey(Schema.Finite),
    threads: Schema.optionalKey(Schema.Int),
    sessions: Schema.optionalKey(Schema.Int),
    requests: Schema.optionalKey(Schema.Int),
  }),
  /** Children that gave up: the last crash, what this node did, and whether one of that name runs again. At most 8. */
  gave_up: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      seconds_ago: Schema.Finite,
      restarts: Schema.Int,
      reason: Schema.String,
      outcome: Schema.String,
      recovered: Schema.Boolean,
    }),
  ),
  /** Also those that `children` leaves out. */
  children_total: Schema.Int,
  children: Schema.Array(Schema.suspend((): Schema.Codec<TreeRecord> => TreeRecord)),
}).annotate({ identifier: "TreeRecord" })

export const NodeTreeRecord = Schema.Struct({
  status: Schema.Literal("success"),
  timestamp: Schema.String,
  tree: TreeRecord,
})

const tenths = (ms: number): number => Math.round(ms / 100) / 10

const recordOf = (reading: TreeReading): TreeRecord => {
  const { ageMs, childCount, children, gaveUp, holds, kind, mailbox, name, restarts, state } = reading
  const { memoryBytes, ...counts } = holds
  return {
    name,
    kind,
    state,
    age_seconds: tenths(ageMs),
    restarts,
    mailbox: mailbox ?? null,
    holds: { ...(memoryBytes === undefined ? {} : { memory_bytes: memoryBytes }), ...counts },
    gave_up: gaveUp.map(({ agoMs, ...one }) => ({ ...one, seconds_ago: tenths(agoMs) })),
    children_total: childCount,
    children: children.map(recordOf),
  }
}

export const nodeTree = Effect.fn("Operations.nodeTree")(function* () {
  yield* operator
  const { root } = yield* NodeTree
  const tree = recordOf(readTree(root, yield* monotonicMs, mostChildren))
  const record: typeof NodeTreeRecord.Type = {
    status: "success",
    timestamp: timestamp(yield* Clock.currentTimeMillis),
    tree,
  }
  return record
})

// Makes a running node use a changed catalog, and finds out whether it does. A node on the same data directory notices the file
// of added models by itself; a catalog of the operator's own is read again on request, which needs an operator's credential.
import { Effect, Result } from "effect"
import { type GivenNode, operatorAccess } from "../shared/NodeClient.ts"
import { postForText } from "../shared/NodeReplies.ts"
import { loadStates } from "./ModelControl.ts"

/** Longest wait for a node that notices the change by itself: it looks every second, and checks sums of new files. */
const patienceMs = 30_000
const everyMs = 250

interface Notice {
  /** `served`: the node has the change. `none`: no node answers. */
  readonly node: "served" | "not served" | "none"
  /** For the operator, in one line. */
  readonly line: string
}

/**
 * @param id of the model that was added or removed
 * @param present whether the node should have it
 * @param watched whether a node notices the change by itself
 */
export const noticeOfNode = Effect.fnUntraced(function* (
  given: GivenNode,
  { id, present, watched }: { readonly id: string; readonly present: boolean; readonly watched: boolean },
) {
  const access = yield* Effect.result(operatorAccess(given))
  if (Result.isFailure(access)) {
    const line = `no node was asked (${access.failure.message}); a running one uses the catalog after \`edgewise reload\``
    return { node: "none", line } satisfies Notice
  }
  const { base } = access.success
  const states = yield* loadStates(given)
  if (states === undefined) {
    const line = `no node answers at ${base.origin}: the next start of \`edgewise serve\` uses the catalog`
    return { node: "none", line } satisfies Notice
  }
  const asked = yield* postForText(access.success, "/v1/models/reload", undefined).pipe(
    Effect.scoped,
    Effect.match({ onFailure: ({ message }) => message, onSuccess: () => undefined }),
  )
  const hasIt = Effect.map(
    loadStates(given),
    (now) => now !== undefined && Object.hasOwn(now.loading_status, id),
  )
  const waitMs = watched && asked !== undefined ? patienceMs : 0
  let is = yield* hasIt
  for (let waitedMs = 0; is !== present && waitedMs < waitMs; waitedMs += everyMs) {
    yield* Effect.sleep(everyMs)
    is = yield* hasIt
  }
  if (is === present) {
    const line = present
      ? `served by the node at ${base.origin}`
      : `no longer served by the node at ${base.origin}`
    return { node: "served", line } satisfies Notice
  }
  const what = present ? "does not have it yet" : "still has it"
  const why =
    asked === undefined
      ? "it was started with another catalog or data directory; name them with --catalog and --data-dir"
      : `${asked}; run \`edgewise reload\` as its operator, or send the node SIGHUP`
  return { node: "not served", line: `the node at ${base.origin} ${what}: ${why}` } satisfies Notice
})

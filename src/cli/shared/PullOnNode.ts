// `edgewise models pull --node`: has a running node pull, and follows the events of its reply (protocol 12.4). The
// files are stored on the node, so this also works from another machine.
import { Effect, Schema } from "effect"
import type { PullWatcher } from "#weights/Download.ts"
import { eachEvent, localFailure, type NodeAccess } from "./NodeClient.ts"
import { postJson } from "./NodeReplies.ts"

/** One file as the node reports it. */
const FileRecord = Schema.Struct({
  role: Schema.String,
  source: Schema.String,
  size_bytes: Schema.Int,
  sha256: Schema.String,
  checked_by: Schema.NullOr(Schema.Literals(["catalog", "hub"])),
  fetched: Schema.Boolean,
})
export type FileRecord = typeof FileRecord.Type

const Event = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("progress"),
    file: Schema.String,
    received_bytes: Schema.Int,
    total_bytes: Schema.NullOr(Schema.Int),
  }),
  Schema.Struct({ type: Schema.Literal("done"), files: Schema.Array(FileRecord) }),
  Schema.Struct({ type: Schema.Literal("error"), error: Schema.String }),
])
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Event))

/**
 * Completes with the pull. Interrupting it disconnects; the node then stops the pull unless another client waits for
 * it.
 */
export const pullOnNode = Effect.fnUntraced(function* (
  access: NodeAccess,
  id: string,
  watcherOf: (file: string) => PullWatcher,
) {
  const incoming = yield* postJson(access, "/v1/models/pull", { model_name: id })
  let files: ReadonlyArray<FileRecord> | undefined
  let failure: string | undefined
  let watched: { readonly file: string; readonly watcher: PullWatcher } | undefined
  const onEvent = (data: string) => {
    const event = decode(data)
    if (event._tag === "None") return
    const { value } = event
    if (value.type === "done") files = value.files
    else if (value.type === "error") failure = value.error
    else {
      if (watched?.file !== value.file) watched = { file: value.file, watcher: watcherOf(value.file) }
      if (value.total_bytes !== null) watched.watcher.progress(value.received_bytes, value.total_bytes)
    }
  }
  yield* eachEvent(incoming, onEvent)
  if (failure !== undefined) return yield* localFailure(failure)
  return files ?? (yield* localFailure("the node's answer ended early"))
})

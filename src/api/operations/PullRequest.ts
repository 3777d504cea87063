// POST /v1/models/pull: fetches the weights of a deployed model from its hub and reports the progress as events.
import { Effect } from "effect"
import type { HttpServerRequest } from "effect/http"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { InvalidRequest, ModelNotLoaded } from "#domain/wire/Errors.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { sinkResponse } from "#http/SinkBody.ts"
import type { PulledFile } from "#weights/PullModel.ts"
import { readJson } from "../http/JsonBody.ts"
import { doneEvent, event, eventStreamHeaders } from "../text/TextStream.ts"
import { ModelPulls, type PullProgress, type SharedPull } from "./ModelPulls.ts"
import { operator } from "./Operations.ts"
import { PullRequest } from "./OperatorRecords.ts"

const readPull = readJson(PullRequest)

/** Time between two progress events. A guess: often enough for a progress bar. */
const everyMs = 500
/** Without progress, an event is repeated after this many intervals, so that proxies do not close the connection. */
const quietTurns = 20

const progressEvent = ({ file, receivedBytes, totalBytes }: PullProgress): string =>
  event({ type: "progress", file, received_bytes: receivedBytes, total_bytes: totalBytes ?? null })

const fileRecord = ({ checkedBy, fetched, role, sha256, sizeBytes, source }: PulledFile) => ({
  role,
  source,
  size_bytes: sizeBytes,
  sha256,
  checked_by: checkedBy ?? null,
  fetched,
})

const bodyOf = (model: string, pull: SharedPull) =>
  sinkResponse(
    (sink) =>
      Effect.gen(function* () {
        let isReady = true
        let told: PullProgress | undefined
        let quiet = 0
        sink.onDrain(() => {
          isReady = true
        })
        // A slow reader misses events; none are queued for it.
        const tell = Effect.sync(() => {
          const progress = pull.progress()
          if (!isReady || progress.file === "" || (progress === told && ++quiet < quietTurns)) return
          told = progress
          quiet = 0
          isReady = sink.write(progressEvent(progress))
        })
        const telling = Effect.forever(Effect.andThen(tell, Effect.sleep(everyMs)))
        const last = yield* Effect.raceFirst(
          Effect.match(pull.end, {
            onSuccess: (files) => ({ type: "done", model, files: files.map(fileRecord) }),
            onFailure: (error) => ({
              type: "error",
              error: error._tag === "Draining" ? detailOf(error) : error.message,
            }),
          }),
          telling,
        )
        // The last state of the last file, so that a progress bar ends full.
        if (last.type === "done" && pull.progress().file !== "") sink.write(progressEvent(pull.progress()))
        sink.write(event(last) + doneEvent)
      }),
    { contentType: "text/event-stream; charset=utf-8", headers: eventStreamHeaders },
  )

/** Refuses what can be refused before the pull begins; after that, a failure is an event. */
export const pullModelOnNode = Effect.fn("Operations.pull")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  yield* operator
  const { model_name } = yield* readPull(request)
  const view = (yield* ModelRegistry).find(model_name)
  if (view === undefined) return yield* new ModelNotLoaded({ model: model_name })
  const pulls = yield* ModelPulls
  if (!pulls.hasHub)
    return yield* new InvalidRequest({ field: "", problem: "this node uses no hub: HF_HUB_OFFLINE is set" })
  return bodyOf(model_name, yield* pulls.join(view.entry))
})

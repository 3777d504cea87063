// Measures one model: loads it on the private node, runs the measurements of its kind, and reads the memory of its
// engine's process. A model that cannot be loaded or measured gets the reason in one line.
import { Effect } from "effect"
import { privateBytesOf, residentBytesOf } from "#actors/device/ResidentMemory.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { describeTrial, mostOf, type ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { type LoadClient, NotMeasured } from "../load/LoadClient.ts"
import type { ModelReport } from "../report/Document.ts"
import { librariesOf } from "./EngineProcessFacts.ts"
import { measureSpeech } from "./MeasureSpeech.ts"
import { measureText } from "./MeasureText.ts"
import { measureTranscription } from "./MeasureTranscription.ts"
import type { Measuring } from "./Measuring.ts"
import { leastMs, loadMs, shareMs } from "./Plan.ts"
import type { PrivateNode } from "./PrivateNode.ts"

export const emptyReport = (
  { entry, sizeBytes }: Deployment,
  { reason = null, same_as = null, status }: Pick<ModelReport, "status"> & Partial<ModelReport>,
): ModelReport => ({
  id: entry.id,
  kind: entry.kind,
  adapter: entry.adapter,
  demonstration: entry.demonstration,
  status,
  same_as,
  reason,
  incomplete: [],
  summary: null,
  load_ms: null,
  weights_bytes: sizeBytes,
  memory_bytes: null,
  private_bytes: null,
  threads: null,
  threads_from: null,
  threads_measured: null,
  slots: null,
  context_tokens: null,
  libraries: [],
  text: null,
  speech: null,
  transcription: null,
  limits: [],
})

/** Reduces the engine's message to one line. */
export const oneLine = (text: string): string =>
  text
    .trim()
    .replace(/\s*\n\s*/g, "; ")
    .slice(0, 500)

/** Facts of a loaded model. Fails if it cannot be loaded. */
export const loaded = Effect.fnUntraced(function* (
  node: PrivateNode,
  { id }: ModelEntry,
  deadlineMs: number,
) {
  const model = node.registry.model(id)
  if (model === undefined) return yield* new NotMeasured({ problem: "it is not deployed" })
  const facts = yield* model.load(false).pipe(
    Effect.mapError((error) => {
      const why = model.view().lastFailure
      return new NotMeasured({ problem: oneLine(why === "" ? error.message : why) })
    }),
    Effect.timeoutOrElse({
      duration: deadlineMs,
      orElse: () =>
        Effect.fail(
          new NotMeasured({
            problem: `it was not loaded within ${Math.round(deadlineMs / 1000)} s; --seconds gives it more time`,
          }),
        ),
    }),
  )
  return { facts, loadMs: model.view().timings.loadMs }
})

/** Milliseconds in which a text model measures its threads after a load, where that is not disturbed. A guess: it takes a second. */
const choosingMs = 3_000
const lookMs = 100

/** Waits until a model has chosen its threads: requests would put that off. */
const threadsChosen = (node: PrivateNode, id: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const host = node.registry.find(id)?.host
    if (host?.choosesThreads() !== true) return
    for (let waitedMs = 0; waitedMs < choosingMs && host.threads?.source === "size"; waitedMs += lookMs)
      yield* Effect.sleep(lookMs)
  })

const threadsOf = (choice: ThreadChoice | undefined) =>
  choice === undefined
    ? {}
    : {
        threads: mostOf(choice),
        threads_from: choice.source,
        threads_measured: describeTrial(choice) || null,
      }

/** Unloads a model that a node would not keep loaded. */
export const unloaded = (node: PrivateNode, id: string): Effect.Effect<void> =>
  Effect.ignore(Effect.suspend(() => node.registry.model(id)?.unload ?? Effect.void))

const measure = (measuring: Measuring, entry: ModelEntry) =>
  Effect.gen(function* () {
    const none = { text: null, speech: null, transcription: null }
    switch (entry.kind) {
      case "text":
        return { ...none, text: yield* measureText(measuring) }
      case "speech":
        return { ...none, speech: yield* measureSpeech(measuring, entry) }
      case "transcription":
        return { ...none, transcription: yield* measureTranscription(measuring) }
      case "embedding":
      case "detection":
        measuring.incomplete.push(
          `its speed: only the load and the memory of ${entry.kind} models are measured`,
        )
        return none
    }
  })

interface Asked {
  readonly node: PrivateNode
  readonly client: LoadClient
  readonly deployment: Deployment
  /** Models still to be measured, including this one. */
  readonly left: number
  /** Monotonic time at which all of them should be done. */
  readonly endMs: number
}

const problemOf = ({ missing = [], problem, entry }: Deployment): string | undefined =>
  problem ?? (missing.length > 0 ? `it is not pulled: edgewise models pull ${entry.id}` : undefined)

export const measureModel = ({ client, deployment, endMs, left, node }: Asked): Effect.Effect<ModelReport> =>
  Effect.gen(function* () {
    const { entry } = deployment
    const problem = problemOf(deployment)
    if (problem !== undefined) return emptyReport(deployment, { status: "failed", reason: oneLine(problem) })
    const beganMs = yield* monotonicMs
    if (endMs - beganMs < leastMs) {
      const reason = "there was no time left for it; --seconds gives more time, --model selects models"
      return emptyReport(deployment, { status: "skipped", reason })
    }
    const { facts, loadMs: tookMs } = yield* loaded(node, entry, loadMs(endMs - beganMs, left - 1))
    const nowMs = yield* monotonicMs
    yield* threadsChosen(node, entry.id)
    const incomplete: Array<string> = []
    const ownEndMs = nowMs + Math.max(leastMs, shareMs(endMs - nowMs, left))
    const measuring = { node, client, model: entry.id, endMs: ownEndMs, incomplete }
    const measured = yield* Effect.result(measure(measuring, entry))
    const host = node.registry.find(entry.id)?.host
    const pid = host?.gauges().pid
    return {
      ...emptyReport(deployment, { status: incomplete.length === 0 ? "measured" : "partial" }),
      ...(measured._tag === "Success"
        ? measured.success
        : { status: "failed" as const, reason: oneLine(measured.failure.problem) }),
      incomplete,
      summary: facts.summary,
      load_ms: tookMs === undefined ? null : Math.round(tookMs),
      memory_bytes: pid === undefined ? null : residentBytesOf(pid),
      private_bytes: pid === undefined ? null : privateBytesOf(pid),
      ...threadsOf(host?.threads),
      slots: facts.slots,
      context_tokens: "contextTokens" in facts ? facts.contextTokens : null,
      libraries: librariesOf(pid),
    } satisfies ModelReport
  }).pipe(
    Effect.catch(({ problem }) =>
      Effect.succeed(emptyReport(deployment, { status: "failed", reason: problem })),
    ),
  )

// Speech and transcription on the card, where ONNX Runtime's CUDA libraries are installed: the same generated weights on the card and on
// the processor, in two nodes.

import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { Effect, type Scope } from "effect"
import { speak } from "#harness/client/SpeechRequest.ts"
import { besideFloor, type Part, readingsOf } from "#harness/report/Figure.ts"
import { kokoroFiles } from "../sizes/kokoro/Kokoro.ts"
import { whisperFiles } from "../sizes/whisper/Whisper.ts"
import { kokoroEntry, sentence, voice } from "../speech/Models.ts"
import { asked, neverAborted, serverOf } from "../support/Ask.ts"
import { type Child, type ChildFailed, startChild } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { entryOf } from "../transcription/Models.ts"
import { generated } from "../transcription/Sized.ts"
import type { SpeakerCommands } from "../transcription/speakerMain.ts"
import { type GpuStage, type Measure, notRun, settingsOf, threads } from "./Stage.ts"

/** What the runtime loads for the card; its package leaves it out (docs/operations.md). */
const provider = (): string =>
  join(
    dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json")),
    `bin/napi-v6/${process.platform}/${process.arch}/libonnxruntime_providers_cuda.so`,
  )

const missing = (): string | undefined =>
  existsSync(provider())
    ? undefined
    : "ONNX Runtime's CUDA libraries are not installed: no libonnxruntime_providers_cuda.so in onnxruntime-node (docs/operations.md)"

/** `auto`, a rehearsal, computes on the processor. */
const providerOf = ({ gpu }: GpuStage) => (gpu === "cuda" ? "cuda" : "cpu")

type Entry = Readonly<Record<string, unknown>> & { readonly options?: unknown }

const withProvider = (entry: Entry, ep: string): Readonly<Record<string, unknown>> => ({
  ...entry,
  options: { ...(entry.options as object), ep },
})

/** Milliseconds of the same request on the card and on the processor, alternately. The first round is not counted. */
const compared = (
  stage: GpuStage,
  plan: RoundsPlan,
  entry: Entry,
  takeMs: (gateway: Gateway) => Effect.Effect<number, ChildFailed>,
) =>
  Effect.gen(function* () {
    const start = (ep: string) =>
      startGateway({ models: [withProvider(entry, ep)], settings: settingsOf(stage) })
    const onCard = yield* start(providerOf(stage))
    const onHost = yield* start("cpu")
    const round = Effect.all({ card: takeMs(onCard), host: takeMs(onHost) })
    yield* round
    const rounds = yield* repeatRounds(plan, () => round)
    const card = rounds.map((each) => each.card)
    const host = rounds.map((each) => each.host)
    return [...besideFloor(readingsOf("on the processor", "ms", host), readingsOf("on the card", "ms", card))]
  })

const speechTitle = "A sentence of Kokoro 82 M on the card"

const spokenMs = ({ target }: Gateway): Effect.Effect<number, ChildFailed> =>
  asked(async () => {
    const request = {
      model: "demo",
      voice,
      input: sentence,
      format: "pcm",
      rateHz: 24_000,
      playerBufferMs: 0,
    } as const
    const { figures } = await speak(
      serverOf(target),
      { ...request, fields: { stream: false } },
      performance.now(),
      neverAborted,
    )
    return figures.e2e ?? Number.NaN
  })

export const speechOnCard: Measure<RoundsPlan> = (stage, plan) =>
  Effect.gen(function* () {
    const reason = missing()
    if (reason !== undefined && stage.gpu === "cuda") return [notRun(speechTitle, reason)]
    const files = yield* generated(() => kokoroFiles("82m"))
    const figures = yield* compared(stage, plan, kokoroEntry(files, threads), spokenMs)
    return [{ title: speechTitle, method: `${sentence.length} characters, the whole reply`, figures }]
  })

const transcriptionTitle = "A window of Whisper base on the card"
/** Seconds that the encoder takes at once. */
const windowSeconds = 30

const heardMs =
  (speakers: Child<SpeakerCommands>) =>
  ({ target }: Gateway): Effect.Effect<number, ChildFailed> =>
    Effect.map(speakers.ask("hear", { target, seconds: windowSeconds, count: 1 }), ([answer]) =>
      answer?.status === 200 ? answer.elapsedMs : Number.NaN,
    )

export const transcriptionOnCard: Measure<RoundsPlan> = (
  stage,
  plan,
): Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const reason = missing()
    if (reason !== undefined && stage.gpu === "cuda") return [notRun(transcriptionTitle, reason)]
    const files = yield* generated(() => whisperFiles("base"))
    const entry = entryOf({ files, options: { slots: 1 }, catalogThreads: threads })
    const speakers = yield* startChild<SpeakerCommands>({
      name: "speakers",
      entry: new URL("../transcription/speakerMain.ts", import.meta.url),
    })
    const figures = yield* compared(stage, plan, entry, heardMs(speakers))
    return [{ title: transcriptionTitle, method: `${windowSeconds} s of speech, the whole reply`, figures }]
  })

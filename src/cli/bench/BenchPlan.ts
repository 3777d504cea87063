// From the options of the command line to the plan of a run. What is wrong with them is one sentence each.
import { Data, Effect, Option } from "effect"
import type { Decoder } from "#audio/Decoder.ts"
import type { Target } from "#harness/client/Exchange.ts"
import type { SelfReport } from "#harness/client/SelfReport.ts"
import type { ConversationPlan } from "#harness/conversation/Conversations.ts"
import type { TurnDetection } from "#harness/conversation/Session.ts"
import { clipSet } from "#harness/data/ClipFolder.ts"
import { promptSizes, sizedPrompts, spokenSentence } from "#harness/data/Prompts.ts"
import { shareGptPrompts } from "#harness/data/ShareGpt.ts"
import type { WrongData } from "#harness/data/WrongData.ts"
import type { DrivePlan } from "#harness/load/Drive.ts"
import { parseObjective, type WrongObjective } from "#harness/load/Objective.ts"
import {
  type Kind,
  kinds,
  type ListenPlan,
  type Plan,
  type SpeechPlan,
  type TextPlan,
} from "#harness/Plan.ts"
import type {
  ConversationOptions,
  ListenOptions,
  LoadOptions,
  SpeechOptions,
  TextOptions,
} from "./BenchFlags.ts"

/** Wrong options: exit status 2. */
export class WrongBench extends Data.TaggedError("WrongBench")<{ readonly message: string }> {
  readonly exitStatus = 2
}

const wrong = (message: string) => new WrongBench({ message })

/** Turns what a parser throws into wrong usage. */
const parsed = <A>(option: string, parse: () => A) =>
  Effect.try({
    try: parse,
    catch: (cause) => wrong(`${option}: ${cause instanceof Error ? cause.message : String(cause)}`),
  })

/** Points of a ramp, at most: 10 doublings and 6 halvings of the interval. */
const mostTrials = 16
/** Ratio of the loads around the knee at which a ramp ends: the intervals of a 30 s point are hardly narrower. A guess. */
const rampPrecision = 1.1

export const loadPlan = Effect.fnUntraced(function* (options: LoadOptions) {
  const { concurrency, objective, ramp, rampMost, rate } = options
  if (Option.isSome(rate) && Option.isSome(concurrency)) {
    return yield* wrong("--rate (open loop) and --concurrency (closed loop) exclude each other")
  }
  if (ramp && Option.isNone(objective)) {
    return yield* wrong("--ramp needs an --objective, like ttft_p95<300ms")
  }
  const drive: DrivePlan = {
    load: Option.match(rate, {
      onNone: () => ({ loop: "closed", clients: Option.getOrElse(concurrency, () => 1) }) as const,
      onSome: (ratePerSecond) => ({ loop: "open", ratePerSecond }) as const,
    }),
    warmupMs: options.warmup * 1000,
    durationMs: options.duration * 1000,
    requests: options.requests,
    maxInFlight: options.maxInFlight,
    drainMs: options.timeout * 1000,
    seed: options.seed,
  }
  return {
    drive,
    objective: Option.isNone(objective)
      ? undefined
      : yield* Effect.try({
          try: () => parseObjective(objective.value),
          catch: (cause) => wrong(`--objective: ${(cause as WrongObjective).message}`),
        }),
    ramp: ramp ? { most: rampMost, trials: mostTrials, precision: rampPrecision } : undefined,
  } satisfies Partial<Plan>
})

/**
 * What to know before a run about a server that limits requests: a load beyond the limit measures refusals. Undefined where the
 * load stays within it. Closed loops and ramps send as many as are answered.
 */
export const limitNotice = (
  { api = "", requestLimit }: SelfReport,
  { drive: { load }, ramp }: Pick<Plan, "drive" | "ramp">,
): string | undefined => {
  if (requestLimit === undefined) return undefined
  const isEdgewise = api.startsWith("edgewise")
  if (isEdgewise && ramp === undefined && load.loop === "open" && load.ratePerSecond * 60 <= requestLimit)
    return
  return isEdgewise
    ? `this node answers ${requestLimit} requests a minute of one user and refuses more with 429, which count as failures: ` +
        `start it with EDGEWISE_RATE_LIMIT=0 to measure it, or stay below with --rate ${Math.floor((requestLimit / 60) * 10) / 10}`
    : `the server says that it limits requests (${requestLimit}); those beyond it are refused and count as failures: ` +
        "raise the limit there, or stay below it with --rate"
}

/** `name=JSON`, or a text where it is no JSON. */
export const fieldsOf = Effect.fnUntraced(function* (given: ReadonlyArray<string>) {
  const fields: Record<string, unknown> = {}
  for (const one of given) {
    const at = one.indexOf("=")
    if (at < 1) return yield* wrong(`--field: "${one}" is not of the form NAME=JSON`)
    const text = one.slice(at + 1)
    try {
      fields[one.slice(0, at)] = JSON.parse(text)
    } catch {
      fields[one.slice(0, at)] = text
    }
  }
  return fields
})

export const mixOf = Effect.fnUntraced(function* (text: string) {
  const shares: Partial<Record<Kind, number>> = {}
  for (const part of text.split(",")) {
    const [name = "", value = ""] = part.trim().split("=")
    const kind = kinds.find((each) => each === name && each !== "conversation")
    const share = Number(value)
    if (kind === undefined)
      return yield* wrong(
        `--mix: "${name}" is none of ${kinds.filter((each) => each !== "conversation").join(", ")}`,
      )
    if (value === "" || !Number.isFinite(share) || share < 0 || share > 1e6) {
      return yield* wrong(`--mix: "${part.trim()}" is not of the form KIND=NUMBER`)
    }
    shares[kind] = share
  }
  if (Object.values(shares).every((share) => share === 0)) return yield* wrong("--mix has no kind of request")
  return shares
})

/** Parts of names by which models of a kind are recognised, because the list of models does not say what they are for. */
const hints: Readonly<Record<Kind, RegExp>> = {
  text: /llm|chat|instruct|gpt(?!.*transcribe)|qwen|llama|gemma|mistral/i,
  speech: /tts|speech|kokoro|voice|chatterbox|piper|orpheus/i,
  transcription: /stt|whisper|transcri|asr|parakeet|canary/i,
  live: /stt|whisper|transcri|asr|parakeet|canary/i,
  conversation: /realtime|convers|omni/i,
}

/** The first model that is for this kind by its name, else the first. */
export const modelOf = (
  kind: Kind,
  given: Option.Option<string>,
  { models = [], modelsFailure }: SelfReport,
): Effect.Effect<string, WrongBench> => {
  if (Option.isSome(given)) return Effect.succeed(given.value)
  const others = kinds.filter((each) => each !== kind).map((each) => hints[each])
  const byName = models.find((id) => hints[kind].test(id))
  const unnamed = models.find((id) => !others.some((hint) => hint.test(id)))
  const found =
    byName ??
    // A server that converses may call the conversation by its text model's name.
    (kind === "conversation" ? models.find((id) => hints.text.test(id)) : undefined) ??
    unnamed ??
    (models.length === 1 ? models[0] : undefined)
  return found === undefined
    ? Effect.fail(
        wrong(
          modelsFailure === undefined
            ? `the server names no model for ${kind} requests; give --model`
            : `the server did not list its models: ${modelsFailure}; give --model`,
        ),
      )
    : Effect.succeed(found)
}

export const textPlan = Effect.fnUntraced(function* (
  options: TextOptions,
  model: string,
  data: Option.Option<string>,
  fields: Readonly<Record<string, unknown>>,
  seed: number,
): Effect.fn.Return<TextPlan, WrongBench> {
  const words = Option.getOrElse(options.promptWords, () => promptSizes[options.prompts])
  const prompts = Option.isSome(data)
    ? yield* parsed("--data", () => shareGptPrompts(data.value, seed))
    : sizedPrompts(words, seed)
  return { model, prompts, maxTokens: options.maxTokens, temperature: options.temperature, fields }
})

export const speechPlan = (
  options: SpeechOptions,
  model: string,
  fields: Readonly<Record<string, unknown>>,
  seed: number,
): SpeechPlan => ({
  model,
  voice: options.voice,
  format: options.format,
  rateHz: options.sampleRate,
  playerBufferMs: options.playerBuffer,
  fields,
  input: (index) => spokenSentence(seed, index),
  dataset: "edgewise's own sentences",
})

export const listenPlan = (
  { clips, data, language }: ListenOptions,
  model: string,
  fields: Readonly<Record<string, unknown>>,
  seed: number,
): Effect.Effect<ListenPlan, WrongBench, Decoder> =>
  clipSet(Option.getOrUndefined(data), clips, seed).pipe(
    Effect.mapError((cause: WrongData) => wrong(`--data: ${cause.message}`)),
    Effect.map((set) => ({
      model,
      clips: set.clips,
      dataset: set.name,
      language: Option.getOrUndefined(language),
      fields,
    })),
  )

const detectionOf = ({ eagerness, silence, turnDetection }: ConversationOptions): TurnDetection => {
  switch (turnDetection) {
    case "server_vad":
      return { type: turnDetection, silence_duration_ms: silence }
    case "semantic_vad":
      return { type: turnDetection, eagerness }
    case "none":
      return { type: turnDetection }
  }
}

/** @param transcriptionModel undefined: no transcripts are asked for */
export const conversationPlan = (
  options: ConversationOptions,
  model: string,
  transcriptionModel: string | undefined,
  seed: number,
): Effect.Effect<ConversationPlan, WrongBench, Decoder> =>
  Effect.map(listenPlan(options, model, {}, seed), ({ clips, dataset, language }) => ({
    model,
    transport: options.transport,
    clips,
    dataset,
    language,
    turns: detectionOf(options),
    voice: Option.getOrUndefined(options.voice),
    instructions: Option.getOrUndefined(options.instructions),
    transcriptionModel,
    maxTokens: options.maxTokens,
    pieceMs: options.pieceMs,
    interrupt: options.interrupt,
    turnsEach: options.turns,
    compare: options.compare,
  }))

/** The server's address without its `/v1`. */
export const baseOf = (text: string): Effect.Effect<string, WrongBench> => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return Effect.fail(wrong(`--target: ${text} is not an address like http://127.0.0.1:8080`))
  }
  if (url.username !== "" || url.password !== "") {
    return Effect.fail(wrong("--target: an address with a password; give --key or --header"))
  }
  return Effect.succeed(`${url.origin}${url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "")}`)
}

export const headersOf = Effect.fnUntraced(function* (key: string | undefined, given: ReadonlyArray<string>) {
  const headers: Record<string, string> =
    key === undefined || key === "" ? {} : { authorization: `Bearer ${key}` }
  for (const one of given) {
    const at = one.indexOf(":")
    const name = one.slice(0, at).trim().toLowerCase()
    const value = one.slice(at + 1).trim()
    if (at < 1 || !/^[!#$%&'*+.^_`|~\da-z-]+$/.test(name) || !/^[\t\x20-\x7e]*$/.test(value)) {
      return yield* wrong(`--header: "${name}" is not of the form NAME:VALUE`)
    }
    headers[name] = value
  }
  if (Object.values(headers).some((value) => !/^[\t\x20-\x7e]*$/.test(value))) {
    return yield* wrong("--key has characters that no header may have")
  }
  return headers as Target["headers"]
})

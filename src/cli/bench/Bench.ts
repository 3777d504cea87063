// `edgewise bench SUITE`: measures any OpenAI-style server under a load (docs/benchmarks.md), and `edgewise bench compare`.
import { accessSync, constants, statSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { Console, Effect, Option } from "effect"
import { Command } from "effect/cli"
import { Decoder } from "#audio/Decoder.ts"
import { load } from "#config/Config.ts"
import { closeConnections, type Target } from "#harness/client/Exchange.ts"
import { RequestFailed } from "#harness/client/Failures.ts"
import { type SelfReport, selfReport } from "#harness/client/SelfReport.ts"
import type { Kind, Plan, Plans } from "#harness/Plan.ts"
import { run } from "#harness/Run.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { pageOf } from "#harness/report/Page.ts"
import { reportText } from "#harness/report/Report.ts"
import { figureIn, type Result, resultForm, resultText, resultVersion } from "#harness/report/Result.ts"
import { allRequests } from "#harness/report/Summarize.ts"
import { nodeDecoder } from "../roles/NodeDecoder.ts"
import { AlreadyReported } from "../shared/CommandLine.ts"
import { interrupted, localFailure, nodeAccess, scopeHint } from "../shared/NodeClient.ts"
import { printJson } from "../shared/Output.ts"
import { progressLine } from "../shared/ProgressLine.ts"
import { commit } from "../shared/Version.ts"
import { compare } from "./BenchCompare.ts"
import { type CommonOptions, type ListenOptions, suiteFlags } from "./BenchFlags.ts"
import {
  baseOf,
  conversationPlan,
  fieldsOf,
  headersOf,
  limitNotice,
  listenPlan,
  loadPlan,
  mixOf,
  modelOf,
  speechPlan,
  textPlan,
  WrongBench,
} from "./BenchPlan.ts"

/** The given server, or the local node with its key. */
const targetOf = Effect.fnUntraced(function* ({ header, key, target, timeout }: CommonOptions) {
  if (Option.isSome(target)) {
    const base = yield* baseOf(target.value)
    const headers = yield* headersOf(Option.getOrUndefined(key), header)
    return { base, headers, timeoutMs: timeout * 1000 } satisfies Target
  }
  const access = yield* nodeAccess({ url: Option.none(), key })
  const headers = yield* headersOf(access.key, header)
  return { base: access.base.origin, headers, timeoutMs: timeout * 1000 } satisfies Target
})

/** What a promise of the harness fails with, as the command's one line. */
const failureOf = (cause: unknown) => {
  if (!(cause instanceof RequestFailed)) return localFailure(cause)
  if (cause.key === "401" || cause.key === "403") {
    const how = scopeHint(cause.message) ?? "edgewise keys create --org NAME makes one for a node of edgewise"
    return localFailure(`the server refused the key (${cause.key}): ${cause.message}; give --key; ${how}`)
  }
  return localFailure(/^\d+$/.test(cause.key) ? `${cause.message} (${cause.key})` : cause.message)
}

const attempt = <A>(work: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: work, catch: failureOf })

const writeOut = (path: string, text: string) =>
  Effect.try({
    try: () => writeFileSync(path, text),
    catch: (cause) => localFailure((cause as Error).message),
  })

/** Before the run: a wrong path must not cost one. */
const requireFolder = (path: string) =>
  Effect.try({
    try: () => {
      accessSync(dirname(path), constants.W_OK)
      if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
        throw new Error(`${path} is a folder`)
    },
    catch: (cause) => new WrongBench({ message: (cause as Error).message }),
  })

type Prepared = Pick<Plan, "plans" | "shares">

/** A suite from its options: `prepare` reads the data sets and chooses the models. */
const bench = Effect.fnUntraced(function* <R, E>(
  suite: string,
  options: CommonOptions,
  prepare: (report: SelfReport) => Effect.Effect<Prepared, E, R>,
) {
  const loads = yield* loadPlan(options)
  const target = yield* targetOf(options)
  for (const path of [options.out, options.html]) if (Option.isSome(path)) yield* requireFolder(path.value)
  const work = Effect.gen(function* () {
    const progress = yield* progressLine()
    progress.show("first look", undefined)
    const reported = yield* attempt((signal) => selfReport(target, signal))
    const prepared = yield* prepare(reported)
    const machine = describeMachine(new Date())
    const startedMs = performance.now()
    const plan: Plan = { suite, target, ...prepared, ...loads }
    const notice = limitNotice(reported, plan)
    if (notice !== undefined) progress.say(notice)
    const sections = yield* attempt((signal) => run({ plan, signal, onProgress: progress.show }))
    return {
      form: resultForm,
      version: resultVersion,
      suite,
      revision: commit(),
      machine,
      settings: settingsOf(plan),
      target: { url: target.base, reported: { ...reported } },
      elapsedSeconds: Math.round((performance.now() - startedMs) / 1000),
      sections,
    } satisfies Result
  })
  const result = yield* Effect.scoped(Effect.raceFirst(work, interrupted)).pipe(
    Effect.ensuring(Effect.sync(closeConnections)),
  )
  if (Option.isSome(options.out)) yield* writeOut(options.out.value, resultText(result))
  if (Option.isSome(options.html)) yield* writeOut(options.html.value, pageOf(result))
  if (options.json) yield* printJson(result)
  else yield* Console.log(reportText(result))
  const sum = (name: string) =>
    result.sections.reduce((total, section) => total + (figureIn(section, allRequests, name)?.median ?? 0), 0)
  const [counted, failed] = [sum("requests"), sum("failed")]
  if (counted > failed) return
  yield* Console.error(
    counted === 0
      ? "no request began after the warm-up: requests take longer than --warmup and --duration"
      : "no request succeeded",
  )
  return yield* new AlreadyReported({ exitStatus: 1 })
})

/** What a reader needs to repeat the run. Keys and headers are left out: they may be secrets. */
const settingsOf = ({
  drive,
  objective,
  plans,
  ramp,
  shares,
  target,
}: Plan): Readonly<Record<string, unknown>> => {
  const { load: _, ...limits } = drive
  const { conversation, live, speech, text, transcription } = plans
  return {
    ...limits,
    timeoutMs: target.timeoutMs,
    ...(objective === undefined ? {} : { objective: objective.text }),
    ...(ramp === undefined ? {} : { ramp }),
    shares,
    ...(text === undefined ? {} : { text: { ...text, prompts: text.prompts.name } }),
    ...(speech === undefined ? {} : { speech: { ...speech, input: undefined } }),
    ...(transcription === undefined
      ? {}
      : { transcription: { ...transcription, clips: transcription.clips.length } }),
    ...(live === undefined ? {} : { live: { ...live, clips: live.clips.length } }),
    ...(conversation === undefined
      ? {}
      : { conversation: { ...conversation, clips: conversation.clips.length } }),
  }
}

/** Decodes data sets with the decoder that a node on this machine would use. */
const withDecoder = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const config = yield* load({})
    const program = Effect.map(nodeDecoder(config), (chosen) => chosen.program)
    return yield* Effect.provide(work, Decoder.layer({ program }))
  })

const only = (kind: Kind, plans: Plans): Prepared => ({ plans, shares: { [kind]: 1 } })

const text = Command.make("text", suiteFlags.text, (options) =>
  bench("text", options, (report) =>
    Effect.gen(function* () {
      const fields = yield* fieldsOf(options.field)
      const model = yield* modelOf("text", options.model, report)
      return only("text", { text: yield* textPlan(options, model, options.data, fields, options.seed) })
    }),
  ),
).pipe(Command.withDescription("Streamed chats: first token, gaps, tokens a second"))

const speech = Command.make("speech", suiteFlags.speech, (options) =>
  bench("speech", options, (report) =>
    Effect.gen(function* () {
      const fields = yield* fieldsOf(options.field)
      const model = yield* modelOf("speech", options.model, report)
      return only("speech", { speech: speechPlan(options, model, fields, options.seed) })
    }),
  ),
).pipe(Command.withDescription("Speech: first audible sample, under-runs of a player, real-time factor"))

const listening = (
  options: ListenOptions,
  model: string,
  fields: Readonly<Record<string, unknown>>,
  seed: number,
) => withDecoder(listenPlan(options, model, fields, seed))

const transcription = Command.make("transcription", suiteFlags.transcription, (options) =>
  bench("transcription", options, (report) =>
    Effect.gen(function* () {
      const fields = yield* fieldsOf(options.field)
      const model = yield* modelOf("transcription", options.model, report)
      const plan = yield* listening(options, model, fields, options.seed)
      return only("transcription", { transcription: { ...plan, stream: options.stream } })
    }),
  ),
).pipe(Command.withDescription("Transcriptions of files: time to the text, real-time factor, word errors"))

const live = Command.make("live", suiteFlags.live, (options) =>
  bench("live", options, (report) =>
    Effect.gen(function* () {
      const model = yield* modelOf("live", options.model, report)
      const plan = yield* listening(options, model, {}, options.seed)
      return only("live", { live: { ...plan, protocol: options.protocol } })
    }),
  ),
).pipe(
  Command.withDescription("Live sessions in real time: caption lag, flicker, time to final, word errors"),
)

const conversation = Command.make("conversation", suiteFlags.conversation, (options) =>
  bench("conversation", { ...options, rate: Option.none(), maxInFlight: 1 }, (report) =>
    Effect.gen(function* () {
      const model = yield* modelOf("conversation", options.model, report)
      const ears = Option.contains(options.transcriptionModel, "none")
        ? undefined
        : yield* modelOf("transcription", options.transcriptionModel, report)
      const plan = yield* withDecoder(conversationPlan(options, model, ears, options.seed))
      return only("conversation", { conversation: plan })
    }),
  ),
).pipe(
  Command.withDescription(
    "Spoken conversations in real time: voice to voice, interruptions, order of events",
  ),
)

const mixed = Command.make("mixed", suiteFlags.mixed, (options) =>
  bench("mixed", options, (report) =>
    Effect.gen(function* () {
      const shares = yield* mixOf(options.mix)
      const has = (kind: Kind) => (shares[kind] ?? 0) > 0
      const { seed } = options
      const plans: { -readonly [K in keyof Plans]: Plans[K] } = {}
      if (has("text")) {
        const model = yield* modelOf("text", options.textModel, report)
        plans.text = yield* textPlan(options, model, Option.none(), {}, seed)
      }
      if (has("speech")) {
        const model = yield* modelOf("speech", options.speechModel, report)
        plans.speech = speechPlan(options, model, {}, seed)
      }
      if (has("transcription")) {
        const model = yield* modelOf("transcription", options.transcriptionModel, report)
        plans.transcription = { ...(yield* listening(options, model, {}, seed)), stream: options.stream }
      }
      if (has("live")) {
        const model = yield* modelOf("live", options.liveModel, report)
        plans.live = { ...(yield* listening(options, model, {}, seed)), protocol: options.protocol }
      }
      return { plans, shares }
    }),
  ),
).pipe(Command.withDescription("Several kinds of requests at once, in given shares"))

export const benchCommand = Command.make("bench").pipe(
  Command.withDescription("Measure any OpenAI-style server under a load, and compare results"),
  Command.withSubcommands([text, speech, transcription, live, conversation, mixed, compare]),
)

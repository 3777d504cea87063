// `edgewise prove`: pulls published weights, runs them on the product's own engines, compares them with what is publicly known of them,
// and writes a result that may be sent to the project.
import { accessSync, constants, writeFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { Decoder } from "#audio/Decoder.ts"
import { load } from "#config/Config.ts"
import { switchOff } from "#confine/Launch.ts"
import { clipSet } from "#harness/data/ClipFolder.ts"
import { pageOf } from "../prove/Page.ts"
import { prove as proof } from "../prove/Prove.ts"
import { readReferences } from "../prove/ReadReferences.ts"
import { nodeDecoder } from "../roles/NodeDecoder.ts"
import { AlreadyReported } from "../shared/CommandLine.ts"
import { interrupted, localFailure } from "../shared/NodeClient.ts"
import { jsonFlag, printJson, switchFlag, textFlag } from "../shared/Output.ts"
import { progressLine } from "../shared/ProgressLine.ts"
import { settingFlags, textsOf } from "../shared/SettingFlags.ts"
import { keepHeapSmall } from "../shared/V8Flags.ts"

const defaults = ["whisper-base", "kokoro", "qwen3-0.6b"]

/** Recordings of a larger folder that are drawn from it, always the same ones. */
const mostRecordings = 200
const seed = 1

const { confine, dataDir, memoryMb } = settingFlags

const checkWritable = (path: string) =>
  Effect.try({
    try: () => accessSync(dirname(path), constants.W_OK),
    catch: (cause) => localFailure(`--out: ${cause instanceof Error ? cause.message : String(cause)}`),
  })

export const prove = Command.make(
  "prove",
  {
    sources: Argument.String("PRESET").pipe(
      Argument.withDescription(
        `Presets, or anything else that \`models add\` takes; without any: ${defaults.join(", ")}`,
      ),
      Argument.variadic({ min: 0, max: 100 }),
    ),
    recordings: textFlag(
      "recordings",
      "FOLDER",
      "Also count wrong words on recordings with transcripts, in the form of LibriSpeech; default: none",
    ),
    references: textFlag(
      "references",
      "FILE",
      "JSON file with what is known of other weights (docs/bring-your-weights.md); default: none",
    ),
    seconds: Flag.Int("seconds").pipe(
      Flag.filter(
        (value) => value === 0 || (value >= 5 && value <= 3_600),
        () => "0, or an integer from 5 to 3600",
      ),
      Flag.withMetavar("SECONDS"),
      Flag.withDescription("Time for the figures of each model; 0 leaves them out; default: 20"),
      Flag.withDefault(20),
    ),
    out: Flag.String("out").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("Where the result is written; default: edgewise-prove.json"),
      Flag.withDefault("edgewise-prove.json"),
    ),
    accept: switchFlag("accept", "Accept licences that restrict what a model may be used for"),
    json: jsonFlag,
    dataDir,
    memoryMb,
    confine,
  },
  Effect.fn(function* ({ accept, json, out, recordings, references, seconds, sources, ...given }) {
    const config = yield* load(textsOf(given))
    const path = resolve(out)
    yield* checkWritable(path)
    const known = yield* readReferences(Option.getOrUndefined(references))
    const clips = Option.isNone(recordings)
      ? []
      : (yield* clipSet(recordings.value, mostRecordings, seed).pipe(
          Effect.mapError(({ message }) => localFailure(`--recordings: ${message}`)),
          Effect.provide(
            Decoder.layer({ program: Effect.map(nodeDecoder(config), (chosen) => chosen.program) }),
          ),
        )).clips
    // Same as in `serve`.
    keepHeapSmall()
    if (!config.confine) switchOff()
    const proving = Effect.gen(function* () {
      const progress = yield* progressLine()
      const wanted = [...new Set(sources.length === 0 ? defaults : sources)]
      return yield* proof({
        config,
        sources: wanted,
        references: known,
        recordings: clips,
        seconds,
        accept,
        progress,
      })
    })
    const document = yield* Effect.scoped(Effect.raceFirst(proving, interrupted))
    yield* Effect.try({
      try: () => writeFileSync(path, `${JSON.stringify(document, null, 2)}\n`),
      catch: (cause) => localFailure(`--out: ${cause instanceof Error ? cause.message : String(cause)}`),
    })
    if (json) yield* printJson(document)
    else {
      yield* Console.log(pageOf(document))
      yield* Console.log(
        `written to ${out}; it has nothing private and may be sent to the project (docs/bring-your-weights.md)`,
      )
    }
    if (!document.ok) return yield* new AlreadyReported({ exitStatus: 1 })
  }),
).pipe(
  Command.withDescription("Prove published weights: pull, run and compare them with what is publicly known"),
)

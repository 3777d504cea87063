// `edgewise speak TEXT --out FILE`: has a running node synthesize a text into a file.
import { createWriteStream, renameSync, rmSync } from "node:fs"
import { dirname, extname } from "node:path"
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { languageFlag, modelFlag } from "../shared/ModelOptions.ts"
import {
  eachChunk,
  interrupted,
  localFailure,
  type NodeAccess,
  type NodeRefused,
  nodeAccess,
  nodeFlags,
} from "../shared/NodeClient.ts"
import { postJson } from "../shared/NodeReplies.ts"
import { wrongUsage } from "../shared/Output.ts"
import { progressLine } from "../shared/ProgressLine.ts"

const formats = ["wav", "mp3", "opus", "pcm"] as const
type Format = (typeof formats)[number]

/** The format by the file's extension. */
const formatByExtension: Readonly<Record<string, Format>> = {
  ".wav": "wav",
  ".mp3": "mp3",
  ".opus": "opus",
  ".ogg": "opus",
  ".pcm": "pcm",
}

interface Speech {
  readonly input: string
  readonly model: string
  readonly voice: string
  readonly language?: string
  readonly speed?: number
}

/** A file that gets its name only when it is complete. */
const openFile = (path: string) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createWriteStream>, NodeRefused>((resume) => {
      const file = createWriteStream(`${path}.part`)
      file.once("open", () => resume(Effect.succeed(file)))
      // The name that the command was given, and what it lacks: the folder for the file.
      file.once("error", (cause: NodeJS.ErrnoException) =>
        resume(
          localFailure(
            cause.code === "ENOENT"
              ? `${dirname(path)}: there is no such folder`
              : cause.message.replaceAll(`${path}.part`, path),
          ),
        ),
      )
    }),
    (file) =>
      Effect.sync(() => {
        file.destroy()
        rmSync(`${path}.part`, { force: true })
      }),
  )

const speakInto = Effect.fnUntraced(function* (
  access: NodeAccess,
  speech: Speech,
  format: Format,
  out: string,
) {
  // Opened first, so that a wrong path costs nothing.
  const file = yield* openFile(out)
  const progress = yield* progressLine()
  progress.show("speaking", undefined)
  const incoming = yield* postJson(access, "/v1/audio/speech", {
    ...speech,
    response_format: format,
    ...(format === "opus" ? { stream: true } : {}),
  })
  let sizeBytes = 0
  yield* eachChunk(incoming, (chunk) => {
    sizeBytes += chunk.length
    file.write(chunk)
  })
  yield* Effect.callback<void, NodeRefused>((resume) => {
    file.once("error", (cause) => resume(localFailure(cause)))
    file.end(() => resume(Effect.void))
  })
  yield* Effect.try({ try: () => renameSync(`${out}.part`, out), catch: localFailure })
  return sizeBytes
})

export const speak = Command.make(
  "speak",
  {
    text: Argument.String("TEXT").pipe(Argument.withDescription("Text to speak")),
    voice: Flag.String("voice").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("Voice of the model; default: af_bella"),
      Flag.withDefault("af_bella"),
    ),
    out: Flag.String("out").pipe(Flag.withMetavar("FILE"), Flag.withDescription("File that is written")),
    format: Flag.Literals("format", formats).pipe(
      Flag.withDescription("Audio format; default: by the file's extension, else wav"),
      Flag.optional,
    ),
    model: modelFlag("Model that speaks", "tts-82m"),
    language: languageFlag("Language of the text, for models with several"),
    speed: Flag.Finite("speed").pipe(
      Flag.withMetavar("TIMES"),
      Flag.withDescription("How many times as fast as usual, 0.25 to 4; default: 1"),
      Flag.optional,
    ),
    ...nodeFlags,
  },
  Effect.fn(function* ({ format, key, language, model, out, speed, text, url, voice }) {
    if (out === "") {
      return yield* wrongUsage(["speak"], "--out must name a file")
    }
    const access = yield* nodeAccess({ url, key })
    const speech: Speech = {
      input: text,
      model,
      voice,
      ...(Option.isSome(language) ? { language: language.value } : {}),
      ...(Option.isSome(speed) ? { speed: speed.value } : {}),
    }
    const asked = Option.getOrElse(format, () => formatByExtension[extname(out).toLowerCase()] ?? "wav")
    const work = speakInto(access, speech, asked, out)
    const sizeBytes = yield* Effect.scoped(Effect.raceFirst(work, interrupted))
    yield* Console.log(`${out}: ${sizeBytes} bytes of ${asked}`)
  }),
).pipe(Command.withDescription("Speak a text into a file on a running node"))

// Which decoder a node uses, by its setting and by what the machine has. Whether the package node-av can be loaded is
// tried in a confined process, like those that decode: its binary may not fit the machine.
import { Effect } from "effect"
import { ConfinedFolder } from "#confine/ConfinedFolder.ts"
import { DecoderFailed } from "./AudioErrors.ts"
import { binding, type DecoderEvent, startDecoder } from "./DecoderProcess.ts"
import type { DecoderProgram } from "./decoder/DecoderWire.ts"
import { type FfmpegProgram, findFfmpeg } from "./FfmpegProgram.ts"

export const decoderSettings = ["auto", "node-av", "ffmpeg"] as const
export type DecoderSetting = (typeof decoderSettings)[number]

export interface ChosenDecoder {
  readonly program: DecoderProgram
  /** For the log: which one decodes, and what it lacks. */
  readonly line: string
}

/** Loading takes 0.2 s. A guess for a machine that is busy. */
const loadTimeoutMs = 20_000

/** Fails with the first line of why it cannot be loaded. */
const loadBinding: Effect.Effect<void, string> = Effect.acquireUseRelease(
  Effect.sync(() => {
    const folder = new ConfinedFolder(undefined)
    return { folder, child: startDecoder(folder.path, undefined, binding) }
  }),
  ({ child }) =>
    Effect.callback<void, string>((resume) => {
      child.on("message", (message: DecoderEvent) => {
        if (message.t === "up") resume(Effect.void)
        if (message.t === "absent") resume(Effect.fail(message.detail))
      })
      child.once("error", (cause) => resume(Effect.fail(cause.message)))
      child.once("exit", (code, signal) => resume(Effect.fail(`it ended with ${signal ?? code}`)))
    }).pipe(
      Effect.timeoutOrElse({
        duration: loadTimeoutMs,
        orElse: () => Effect.fail(`it was not loaded within ${loadTimeoutMs / 1000} seconds`),
      }),
    ),
  ({ child, folder }) =>
    Effect.promise(() => {
      child.kill("SIGKILL")
      return folder.remove()
    }),
)

const withBinding: Effect.Effect<ChosenDecoder, string> = Effect.matchEffect(loadBinding, {
  onSuccess: () =>
    Effect.succeed({ program: binding, line: "audio files and pictures are decoded by the package node-av" }),
  onFailure: (why) =>
    Effect.fail(
      /cannot find (package|module)/i.test(why)
        ? "the package node-av is not installed; npm ci installs it"
        : `the package node-av cannot be loaded (${why}); npm ci installs the build for this machine`,
    ),
})

const withProgram = ({ decoders, missing, path, version }: FfmpegProgram): ChosenDecoder => {
  const lacks = missing.length === 0 ? "" : `; it has no decoder for ${missing.join(", ")}`
  return {
    program: { kind: "ffmpeg", path, decoders },
    line: `audio files are decoded by ${path} ${version}${lacks}; pictures in chats are refused: they need the package node-av`,
  }
}

const absent = (detail: string) => new DecoderFailed({ reason: "Absent", detail })

/**
 * Fails with `Absent`, whose detail says what to install. `auto` takes the package node-av where it loads.
 * @param folders where programs are sought, as in PATH
 */
export const chooseDecoder = (
  setting: DecoderSetting,
  folders: string,
): Effect.Effect<ChosenDecoder, DecoderFailed> => {
  const program = Effect.map(findFfmpeg(folders), withProgram)
  switch (setting) {
    case "node-av":
      return Effect.mapError(withBinding, absent)
    case "ffmpeg":
      return Effect.mapError(program, absent)
    case "auto":
      return Effect.catch(withBinding, (noBinding) =>
        Effect.mapError(program, (noProgram) => absent(`${noBinding}; or: ${noProgram}`)),
      )
  }
}

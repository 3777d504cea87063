// What decodes audio files on this machine, found out once for the process: `serve` prints it, the decoders of the node
// use it, `check` and `doctor` report it.
import { Effect, Fiber, Schema } from "effect"
import type { DecoderFailed } from "#audio/AudioErrors.ts"
import { type ChosenDecoder, chooseDecoder } from "#audio/DecoderChoice.ts"
import { programFolders } from "#config/OtherVariables.ts"
import { type Config, settings } from "#config/Settings.ts"

const found = new Map<Config["decoder"], Fiber.Fiber<ChosenDecoder, DecoderFailed>>()

/**
 * Begins to look at the first use, and not in the fiber that waits for it, whose end must not be the answer for others.
 * Fails with `Absent`, whose detail says what to install.
 */
export const nodeDecoder = ({
  decoder,
}: Pick<Config, "decoder">): Effect.Effect<ChosenDecoder, DecoderFailed> =>
  Effect.suspend(() => {
    const known = found.get(decoder) ?? Effect.runFork(chooseDecoder(decoder, programFolders()))
    found.set(decoder, known)
    return Fiber.join(known)
  })

/** A decoder that was chosen by name is not there. */
class DecoderMissing extends Schema.TaggedError<DecoderMissing>()("DecoderMissing", {
  message: Schema.String,
}) {}

/** Refuses a decoder that was chosen by name and is not there. */
export const requireNamedDecoder = (config: Config): Effect.Effect<void, DecoderMissing> =>
  config.decoder === "auto"
    ? Effect.void
    : Effect.mapError(
        Effect.asVoid(nodeDecoder(config)),
        ({ detail }) =>
          new DecoderMissing({ message: `${settings.decoder.variable}=${config.decoder}: ${detail}` }),
      )

/** The line for the log: which decoder is used, or what does not work without one and what to install. */
export const decoderLine = (config: Config): Effect.Effect<string> =>
  Effect.match(nodeDecoder(config), {
    onFailure: ({ detail }) =>
      "audio files and pictures cannot be decoded, so transcription of files, reference clips of voices and pictures in chats " +
      `are refused: ${detail}`,
    onSuccess: ({ line }) => line,
  })

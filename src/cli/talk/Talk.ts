// `edgewise talk`: a spoken conversation with a running node, from sound files or a pipe.
import { closeSync, openSync } from "node:fs"
import { basename, resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { decodeClip } from "#audio/DecodeClip.ts"
import { Decoder } from "#audio/Decoder.ts"
import { load } from "#config/Config.ts"
import { listenRateHz } from "#domain/audio/Audio.ts"
import type { Target } from "#harness/client/Exchange.ts"
import { RequestFailed } from "#harness/client/Failures.ts"
import type { ConversationAsk, TurnDetection } from "#harness/conversation/Session.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { nodeDecoder } from "../roles/NodeDecoder.ts"
import { readableSize } from "../shared/FileErrors.ts"
import { interrupted, localFailure, nodeAccess, nodeFlags } from "../shared/NodeClient.ts"
import { integerFlag, jsonFlag, switchFlag, textFlag, wrongUsage } from "../shared/Output.ts"
import { converse, type Sound } from "./Conversation.ts"
import { soundFile, soundPipe } from "./SoundFile.ts"
import { TalkLines } from "./TalkLines.ts"

/** Longest file, seconds: the longest turn of a conversation (protocol 11.4). */
const mostSeconds = 120

/** Decoded by the decoder that a node on this machine would use. */
const clipsOf = (paths: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const config = yield* load({})
    for (const path of paths)
      yield* Effect.try({
        try: () => readableSize(path),
        catch: (cause) => localFailure((cause as Error).message),
      })
    const program = Effect.map(nodeDecoder(config), (chosen) => chosen.program)
    const decoded = Effect.forEach(paths, (path) =>
      decodeClip(resolve(path), { maxSeconds: mostSeconds, rateHz: listenRateHz }).pipe(
        Effect.map((samples) => makeClip(basename(path), samples, "")),
        Effect.mapError((cause) =>
          localFailure(`${path}: ${"detail" in cause ? cause.detail : String(cause)}`),
        ),
      ),
    )
    return yield* Effect.provide(decoded, Decoder.layer({ program }))
  })

interface Detection {
  readonly turnDetection: TurnDetection["type"]
  readonly silence: number
  readonly eagerness: "low" | "medium" | "high" | "auto"
}

const detectionOf = ({ eagerness, silence, turnDetection }: Detection): TurnDetection => {
  if (turnDetection === "server_vad") return { type: turnDetection, silence_duration_ms: silence }
  return turnDetection === "semantic_vad" ? { type: turnDetection, eagerness } : { type: turnDetection }
}

const sentence = (cause: unknown): string => {
  if (!(cause instanceof RequestFailed)) return cause instanceof Error ? cause.message : String(cause)
  return /^\d+$/.test(cause.key) && !cause.message.includes(cause.key)
    ? `${cause.message} (${cause.key})`
    : cause.message
}

export const talk = Command.make(
  "talk",
  {
    files: Argument.String("FILE").pipe(
      Argument.withDescription(
        `Sound files (WAV, MP3, OGG, FLAC, …; at most ${mostSeconds} s each) that are said one after the other; without them, the sound of a pipe`,
      ),
      Argument.variadic(),
    ),
    out: textFlag(
      "out",
      "FILE",
      "Write what is played: a WAV file, or - for raw 16-bit samples of 24 kHz on standard output; default: none",
    ),
    rate: integerFlag(
      "rate",
      8_000,
      96_000,
      "HZ",
      "Samples a second of a pipe without a WAV header (16 bit, one channel); default: 24000",
    ).pipe(Flag.withDefault(24_000)),
    model: Flag.String("model").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("Model that converses; default: gpt-realtime, the node's first"),
      Flag.withDefault("gpt-realtime"),
    ),
    voice: textFlag("voice", "ID", "Voice of the answers; default: the node's"),
    instructions: textFlag(
      "instructions",
      "TEXT",
      "What the model is told before the conversation; default: nothing",
    ),
    transcriptionModel: Flag.String("transcription-model").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("Model that hears; default: whisper-1, the node's first"),
      Flag.withDefault("whisper-1"),
    ),
    language: textFlag("language", "CODE", "Spoken language, e.g. en; default: detected, if the model can"),
    maxTokens: integerFlag("max-tokens", 1, 4_096, "TOKENS", "Longest answer, tokens; default: 512").pipe(
      Flag.withDefault(512),
    ),
    turnDetection: Flag.Literals("turn-detection", ["server_vad", "semantic_vad", "none"]).pipe(
      Flag.withDescription(
        "What ends your turn: a silence, the node's judgement, or (none) the end of the file or pipe; default: server_vad",
      ),
      Flag.withDefault("server_vad" as const),
    ),
    silence: integerFlag(
      "silence",
      20,
      10_000,
      "MS",
      "Milliseconds of silence that end a turn with server_vad; default: 500",
    ).pipe(Flag.withDefault(500)),
    eagerness: Flag.Literals("eagerness", ["low", "medium", "high", "auto"]).pipe(
      Flag.withDescription("Of semantic_vad; default: auto"),
      Flag.withDefault("auto" as const),
    ),
    interruptAfter: integerFlag(
      "interrupt-after",
      0,
      120_000,
      "MS",
      "Milliseconds of an answer that are heard before the next FILE is said; default: the whole answer",
    ).pipe(Flag.optional),
    webrtc: switchFlag("webrtc", "Call the node over WebRTC, as browsers do; default: over a WebSocket"),
    timeout: integerFlag(
      "timeout",
      1,
      600,
      "SECONDS",
      "Longest wait for an answer, seconds; default: 30",
    ).pipe(Flag.withDefault(30)),
    json: jsonFlag,
    ...nodeFlags,
  },
  Effect.fn(function* (options) {
    const { files, json, key, out, url } = options
    const usage = (message: string) => wrongUsage(["talk"], message)
    if (files.length === 0 && process.stdin.isTTY === true)
      return yield* usage(
        "give a FILE, or sound through a pipe, e.g. arecord -f S16_LE -r 24000 | edgewise talk",
      )
    if (files.length < 2 && Option.isSome(options.interruptAfter))
      return yield* usage("--interrupt-after needs two FILEs: the second interrupts the answer to the first")
    if (Option.contains(out, "")) return yield* usage("--out must name a file, or be -")
    const access = yield* nodeAccess({ url, key })
    const target: Target = {
      base: access.base.origin,
      headers: { authorization: `Bearer ${access.key}` },
      timeoutMs: options.timeout * 1_000,
      trust: access.trust,
    }
    const sound: Sound =
      files.length === 0
        ? { from: "pipe", input: process.stdin, rateHz: options.rate }
        : {
            from: "files",
            clips: yield* clipsOf(files),
            interruptMs: Option.getOrUndefined(options.interruptAfter),
          }
    const isPiped = Option.contains(out, "-")
    if (Option.isSome(out) && !isPiped) {
      // Before the conversation: a wrong path must not cost one.
      yield* Effect.try({
        try: () => closeSync(openSync(out.value, "w")),
        catch: (cause) => localFailure((cause as Error).message),
      })
    }
    const printed = isPiped ? process.stderr : process.stdout
    const ask: ConversationAsk = {
      model: options.model,
      transport: options.webrtc ? "webrtc" : "websocket",
      turns: detectionOf(options),
      voice: Option.getOrUndefined(options.voice),
      instructions: Option.getOrUndefined(options.instructions),
      transcriptionModel: options.transcriptionModel,
      language: Option.getOrUndefined(options.language),
      maxTokens: options.maxTokens,
      pieceMs: 20,
      include: ["response.latency"],
    }
    const conversation = Effect.tryPromise({
      try: (signal) =>
        converse(
          {
            target,
            ask,
            sound,
            lines: new TalkLines((text) => void printed.write(text), json),
            out: Option.isNone(out)
              ? undefined
              : (onFailure) => (isPiped ? soundPipe(process.stdout, onFailure) : soundFile(out.value)),
          },
          signal,
        ),
      catch: (cause) => localFailure(sentence(cause)),
    })
    yield* Effect.raceFirst(conversation, interrupted)
  }),
).pipe(Command.withDescription("Converse with a running node by sound files or a pipe"))

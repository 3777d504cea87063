// The options of `edgewise bench`: those of every suite, and those of one.
import { type Command, Flag } from "effect/cli"
import { speechFormats } from "#harness/client/SpeechRequest.ts"
import { transportNames } from "#harness/conversation/Transport.ts"
import { promptSizes } from "#harness/data/Prompts.ts"
import { liveProtocols } from "#harness/Plan.ts"
import { integerFlag, jsonFlag, switchFlag, textFlag } from "../shared/Output.ts"

const number = (name: string, low: number, high: number, description: string) =>
  Flag.Finite(name).pipe(
    Flag.filter(
      (value) => value >= low && value <= high,
      () => `a number from ${low} to ${high}`,
    ),
    Flag.withMetavar("N"),
    Flag.withDescription(description),
  )

const integer = (name: string, low: number, high: number, description: string) =>
  integerFlag(name, low, high, "N", description)

/** Requests whose figures are kept: about 0.5 KB each. */
const mostRequests = 200_000

const withDefault = <A>(flag: Flag.Flag<A>, value: A) => Flag.withDefault(flag, value)

const targetFlags = {
  target: textFlag(
    "target",
    "URL",
    "Address of an OpenAI-style server, with or without /v1; default: the local node, as for other commands",
  ),
  key: textFlag(
    "key",
    "KEY",
    "Sent as a bearer token; default: none, or the local node's key without --target",
  ),
  header: Flag.String("header").pipe(
    Flag.withMetavar("NAME:VALUE"),
    Flag.withDescription("Further header of every request; may be given several times"),
    Flag.between(0, 32),
  ),
}

const loadFlags = {
  rate: Flag.optional(
    number(
      "rate",
      0.001,
      100_000,
      "Open loop: requests a second, at random moments (Poisson); also first of a ramp; default: closed loop",
    ),
  ),
  concurrency: Flag.optional(
    integer(
      "concurrency",
      1,
      10_000,
      "Closed loop: clients that each send when answered; default: 1 without --rate",
    ),
  ),
  ramp: switchFlag("ramp", "Search the highest rate, or number of clients, that holds --objective"),
  rampMost: withDefault(number("ramp-most", 0.001, 100_000, "Highest load of a ramp; default: 1000"), 1_000),
  objective: textFlag(
    "objective",
    "TEXT",
    'Conditions like "ttft_p95<300ms,errors<1%" (docs/benchmarks.md); decides goodput and the ramp; default: none',
  ),
  duration: withDefault(
    number("duration", 0.1, 86_400, "Seconds in which requests begin, for each point of a ramp; default: 30"),
    30,
  ),
  warmup: withDefault(number("warmup", 0, 3_600, "Seconds before that, not counted; default: 3"), 3),
  requests: withDefault(
    integer("requests", 1, mostRequests, "Requests that are counted, at most; default: 100000"),
    100_000,
  ),
  maxInFlight: withDefault(
    integer(
      "max-in-flight",
      1,
      20_000,
      "Open loop: requests at a time; others wait, and their latency counts from when they were due; default: 1000",
    ),
    1_000,
  ),
  timeout: withDefault(
    number("timeout", 0.1, 3_600, "Seconds for a request (a live session: after its audio); default: 60"),
    60,
  ),
  seed: withDefault(
    integer("seed", 0, 2 ** 31 - 1, "Of arrivals, prompts and the choice of clips; default: 1"),
    1,
  ),
}

const outputFlags = {
  json: jsonFlag,
  out: textFlag("out", "FILE", "Write the result as JSON; default: none"),
  html: textFlag("html", "FILE", "Write a report with plots; default: none"),
}

const model = (kind: string) =>
  textFlag(
    kind === "" ? "model" : `${kind}-model`,
    "ID",
    `Model${kind === "" ? "" : ` of ${kind} requests`}; default: the server's first that fits by name`,
  )

const field = Flag.String("field").pipe(
  Flag.withMetavar("NAME=JSON"),
  Flag.withDescription("Further field of every request's body, e.g. top_p=0.9; may be given several times"),
  Flag.between(0, 32),
)

const textOwn = {
  prompts: Flag.Literals("prompts", Object.keys(promptSizes) as Array<keyof typeof promptSizes>).pipe(
    Flag.withDescription(
      `Size of generated prompts, words: ${Object.entries(promptSizes)
        .map(([name, words]) => `${name} ${words}`)
        .join(", ")}; default: short`,
    ),
    Flag.withDefault("short" as const),
  ),
  promptWords: Flag.optional(
    integer(
      "prompt-words",
      1,
      100_000,
      "Size of generated prompts instead of --prompts; default: that of --prompts",
    ),
  ),
  maxTokens: withDefault(integer("max-tokens", 1, 100_000, "Tokens of a reply, at most; default: 64"), 64),
  temperature: withDefault(number("temperature", 0, 2, "default: 0"), 0),
}

const speechOwn = {
  voice: withDefault(
    Flag.String("voice").pipe(Flag.withMetavar("ID"), Flag.withDescription("default: alloy")),
    "alloy",
  ),
  format: Flag.Literals("format", speechFormats).pipe(
    Flag.withDescription("Format of speech; default: pcm (16 bit, little-endian)"),
    Flag.withDefault("pcm" as const),
  ),
  sampleRate: withDefault(integer("sample-rate", 8_000, 192_000, "Of raw PCM, Hz; default: 24000"), 24_000),
  playerBuffer: withDefault(
    number(
      "player-buffer",
      0,
      60_000,
      "Milliseconds of audio that the virtual player collects first; default: 0",
    ),
    0,
  ),
}

const listenOwn = {
  data: textFlag(
    "data",
    "FOLDER",
    "Recordings in the form of LibriSpeech; default: 12 clips of synthetic voices that come with edgewise",
  ),
  clips: withDefault(integer("clips", 1, 1_000, "Recordings of --data, drawn by the seed; default: 50"), 50),
  language: textFlag("language", "CODE", "Spoken language, e.g. en; default: not sent"),
}

const transcriptionOwn = {
  stream: switchFlag("stream", "Transcriptions as events; adds the time to the first text"),
}

const liveOwn = {
  protocol: Flag.Literals("protocol", liveProtocols).pipe(
    Flag.withDescription(
      "realtime: OpenAI's events on /v1/realtime; edgewise: its own socket; default: realtime",
    ),
    Flag.withDefault("realtime" as const),
  ),
}

const conversationOwn = {
  transport: Flag.Literals("transport", transportNames).pipe(
    Flag.withDescription(
      "websocket: audio in the events; webrtc: calls, as browsers make them, each in a process of its own; default: websocket",
    ),
    Flag.withDefault("websocket" as const),
  ),
  turnDetection: Flag.Literals("turn-detection", ["server_vad", "semantic_vad", "none"]).pipe(
    Flag.withDescription(
      "Who ends a turn: a silence, the server's judgement, or (none) a commit of the client; default: server_vad",
    ),
    Flag.withDefault("server_vad" as const),
  ),
  silence: withDefault(
    integer("silence", 20, 10_000, "Milliseconds of silence that end a turn with server_vad; default: 500"),
    500,
  ),
  eagerness: Flag.Literals("eagerness", ["low", "medium", "high", "auto"]).pipe(
    Flag.withDescription("Of semantic_vad; default: auto"),
    Flag.withDefault("auto" as const),
  ),
  interrupt: withDefault(
    number("interrupt", 0, 1, "Share of the answers that the user interrupts by speaking; default: 0"),
    0,
  ),
  turns: withDefault(
    integer("turns", 1, 1_000, "Turns of a conversation, then the client opens another; default: 10"),
    10,
  ),
  voice: textFlag("voice", "ID", "Voice of the answers; default: the server's"),
  instructions: textFlag("instructions", "TEXT", "Of the session; default: none are sent"),
  maxTokens: withDefault(integer("max-tokens", 1, 4_096, "Tokens of an answer, at most; default: 32"), 32),
  pieceMs: withDefault(
    integer("piece-ms", 5, 200, "Milliseconds of audio in an event of the client; default: 20"),
    20,
  ),
  transcriptionModel: textFlag(
    "transcription-model",
    "ID",
    "Asked for the user's transcripts, `none` for no transcripts; default: the server's first that fits by name",
  ),
  compare: withDefault(
    integer(
      "compare",
      0,
      500,
      "Turns whose transcripts are compared afterwards with those of files with the same audio; default: 20",
    ),
    20,
  ),
}

const { maxInFlight: _, rate: __, ...closedLoop } = loadFlags

const shared = { ...targetFlags, ...loadFlags, ...outputFlags }

type Given<Flags extends Command.Command.Config> = Command.Command.Config.Infer<Flags>

/** The options of every suite as they were given, and those of one. */
export type CommonOptions = Given<typeof shared>
export type LoadOptions = Given<typeof loadFlags>
export type TextOptions = Given<typeof textOwn>
export type SpeechOptions = Given<typeof speechOwn>
export type ListenOptions = Given<typeof listenOwn>
export type ConversationOptions = Given<typeof listenOwn & typeof conversationOwn>

export const suiteFlags = {
  text: {
    ...shared,
    model: model(""),
    ...textOwn,
    data: textFlag("data", "FILE", "Prompts in the form of ShareGPT (JSON); default: generated ones"),
    field,
  },
  speech: { ...shared, model: model(""), ...speechOwn, field },
  transcription: { ...shared, model: model(""), ...listenOwn, ...transcriptionOwn, field },
  live: { ...shared, model: model(""), ...listenOwn, ...liveOwn },
  conversation: {
    ...targetFlags,
    ...closedLoop,
    ...outputFlags,
    model: model(""),
    ...listenOwn,
    ...conversationOwn,
  },
  mixed: {
    ...shared,
    mix: withDefault(
      Flag.String("mix").pipe(
        Flag.withMetavar("KIND=N,…"),
        Flag.withDescription(
          "How often each kind of request occurs; default: text=4,speech=1,transcription=1",
        ),
      ),
      "text=4,speech=1,transcription=1",
    ),
    textModel: model("text"),
    speechModel: model("speech"),
    transcriptionModel: model("transcription"),
    liveModel: model("live"),
    ...textOwn,
    ...speechOwn,
    ...listenOwn,
    ...transcriptionOwn,
    ...liveOwn,
  },
}

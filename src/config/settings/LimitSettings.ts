// Limits of requests, credentials and connections.
import { integer, type Setting, trueOrFalse } from "./Setting.ts"

export const limitSettings = {
  rateLimit: {
    variable: "EDGEWISE_RATE_LIMIT",
    value: "REQUESTS",
    help: "requests per user and minute on this node; 0 turns the limit off, and that of audio on sockets",
    fallback: 100,
    ...integer(0, 1_000_000),
  },
  authFailureLimit: {
    variable: "EDGEWISE_AUTH_FAILURE_LIMIT",
    value: "REQUESTS",
    help: "wrong credentials per address and minute at this edge; 0 turns the limit off",
    // A guess: a refusal costs 0.2 ms, so this many take 0.1 % of a core; an office behind one address stays below.
    fallback: 300,
    ...integer(0, 1_000_000),
  },
  anonymousRate: {
    variable: "EDGEWISE_ANONYMOUS_RATE",
    value: "REQUESTS",
    help: "requests per address and second without a valid credential at this edge; 0 turns the limit off",
    // A guess: at 50 µs each they take 5 % of a core. All clients of a proxy that is not listed count as one address.
    fallback: 1_000,
    ...integer(0, 1_000_000),
  },
  maxConnections: {
    variable: "EDGEWISE_MAX_CONNECTIONS",
    value: "CONNECTIONS",
    help: "open connections of each listener, WebSockets not counted; further ones are closed at once",
    fallback: 8_192,
    ...integer(16, 1_000_000),
  },
  audioHours: {
    variable: "EDGEWISE_AUDIO_HOURS",
    value: "HOURS",
    help: "longest audio of a file that is transcribed, in hours; 0 sets no limit besides the file's size",
    fallback: 0,
    ...integer(0, 100_000),
  },
  jobHours: {
    variable: "EDGEWISE_JOB_HOURS",
    value: "HOURS",
    help: "how long an ended transcription job and its transcript are kept",
    fallback: 24,
    ...integer(1, 8_760),
  },
  answerHours: {
    variable: "EDGEWISE_ANSWER_HOURS",
    value: "HOURS",
    help: "how long the answer to a request with an Idempotency-Key is kept for its retries",
    fallback: 24,
    ...integer(1, 720),
  },
  receiptDays: {
    variable: "EDGEWISE_RECEIPT_DAYS",
    value: "DAYS",
    help: "how long single receipts are kept; older days that were exported become sums by model; 0 keeps them for ever",
    allowed: "0, or an integer from 2 to 36500",
    fallback: 0,
    // A receipt is what keeps a job that runs again after a crash from being charged twice, for a day at most.
    parse: (text: string) => (text === "0" ? 0 : integer(2, 36_500).parse(text)),
  },
  httpPictures: {
    variable: "EDGEWISE_HTTP_PICTURES",
    help: "fetch pictures of http: addresses too; https: addresses are always fetched",
    // Anyone on the way could replace the picture.
    fallback: false,
    ...trueOrFalse,
  },
  chunkedBodies: {
    variable: "EDGEWISE_CHUNKED_BODIES",
    help: "accept chunked request bodies; false answers 411 to a body without Content-Length",
    // The parser of chunk lines is more lenient than the standard (docs/security.md), but many clients send uploads in
    // chunks.
    fallback: true,
    ...trueOrFalse,
  },
} as const satisfies Record<string, Setting<unknown>>

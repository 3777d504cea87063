// Checks of a model that runs on the private node: ordinary requests over HTTP, whose answers are compared with what is publicly
// known, or with another answer of the model where nothing is. What recordings of the operator say goes into no row.
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { HubSettings } from "#config/OtherVariables.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { exchange, exchangeText, type Target } from "#harness/client/Exchange.ts"
import { transcriptOf } from "#harness/client/TranscriptionRequest.ts"
import type { Clip } from "#harness/data/Clip.ts"
import { wordErrorPercent, wordErrorsOf } from "#harness/figures/WordErrors.ts"
import { readSmall } from "#weights/found/HubFolder.ts"
import { counted } from "../doctor/report/Words.ts"
import { itself, type Row, row } from "./Document.ts"
import type { Reference } from "./Reference.ts"

/** Longest request. A guess: the largest presets answer in minutes on a small machine. */
const deadlineMs = 900_000
const mostReplyBytes = 16 * 2 ** 20
/** A minute of speech. */
const mostAudioBytes = 8 * 2 ** 20

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** The work's row; a request that fails makes a failed row. */
const asRow = (check: string, work: (signal: AbortSignal) => Promise<Row>): Effect.Effect<Row> =>
  Effect.tryPromise({
    try: (interrupted) => work(AbortSignal.any([interrupted, AbortSignal.timeout(deadlineMs)])),
    catch: messageOf,
  }).pipe(Effect.catch((problem) => Effect.succeed(row(check, "fail", problem))))

/** A file as it is uploaded. */
type Upload = Pick<Clip, "bytes" | "fileName" | "type" | "text">

const transcribed = async (
  target: Target,
  model: string,
  upload: Upload,
  signal: AbortSignal,
): Promise<string> => {
  // Only these parts of a clip are sent.
  const clip = upload as Clip
  return (await transcriptOf(target, { model, clip, language: "en", stream: false }, signal)).text
}

const lower = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} ]/gu, "")
    .replace(/\s+/g, " ")

/** The public recording, transcribed. */
export const transcriptRow = (
  target: Target,
  model: string,
  hub: HubSettings,
  recording: Reference["recording"],
): Effect.Effect<Row> => {
  const check = "transcript"
  if (recording === undefined)
    return Effect.succeed(row(check, "none", "no public recording is known here for this model"))
  const { from, path, phrases, repository, revision, sha256, text } = recording
  return readSmall(hub, { repo: repository, revision, path }).pipe(
    Effect.flatMap((bytes) => {
      const sum = createHash("sha256").update(bytes).digest("hex")
      if (sum !== sha256)
        return Effect.succeed(
          row(check, "none", `the hub's ${path} is another file (SHA-256 ${sum})`, {
            expected: sha256,
            reference: from,
          }),
        )
      return asRow(check, async (signal) => {
        const upload = { bytes, fileName: path, type: "audio/wav", text }
        const found = await transcribed(target, model, upload, signal)
        const absent = phrases.filter((phrase) => !lower(found).includes(phrase))
        const { words, wrong } = wordErrorsOf({ spoken: text, transcribed: found })
        return absent.length === 0
          ? row(check, "pass", `${path}: ${wrong} of ${words} words wrong`, { reference: from })
          : row(check, "fail", `${path}: ${JSON.stringify(found.slice(0, 200))}`, {
              expected: phrases.map((phrase) => JSON.stringify(phrase)).join(", "),
              reference: from,
            })
      })
    }),
    Effect.catch(({ message }) => Effect.succeed(row(check, "none", `${path} was not there: ${message}`))),
  )
}

/** Word errors over recordings with transcripts. */
export const recordingsRow = (
  target: Target,
  model: string,
  clips: ReadonlyArray<Clip>,
): Effect.Effect<Row> =>
  asRow("recordings", async (signal) => {
    const pairs = []
    for (const clip of clips)
      pairs.push({ spoken: clip.text, transcribed: await transcribed(target, model, clip, signal) })
    const errors = pairs.map(wordErrorsOf)
    const words = errors.reduce((sum, one) => sum + one.words, 0)
    const wrong = errors.reduce((sum, one) => sum + one.wrong, 0)
    const seconds = Math.round(clips.reduce((sum, clip) => sum + clip.seconds, 0))
    const percent = wordErrorPercent(pairs).toFixed(1)
    return row(
      "recordings",
      "none",
      `${percent} % word errors: ${wrong} of ${words} words, ${counted(clips.length, "recording")}, ${seconds} s`,
    )
  })

interface ChatReply {
  readonly choices?: ReadonlyArray<{ readonly message?: { readonly content?: unknown } }>
}

const answered = async (target: Target, model: string, ask: string, signal: AbortSignal): Promise<string> => {
  const body = JSON.stringify({
    model,
    messages: [{ role: "user", content: ask }],
    temperature: 0,
    max_tokens: 120,
  })
  const outgoing = { path: "/v1/chat/completions", type: "application/json", body, signal }
  const reply = JSON.parse(await exchangeText(target, outgoing, mostReplyBytes)) as ChatReply
  return String(reply.choices?.[0]?.message?.content ?? "")
}

const repeated = "Count from one to ten in words."

/** Greedy answers: questions with one right answer, and the same question twice. */
export const answerRows = (
  target: Target,
  model: string,
  questions: Reference["questions"] = [],
): Effect.Effect<ReadonlyArray<Row>> =>
  Effect.all([
    questions.length === 0
      ? Effect.succeed(row("answers", "none", "no question is known here for this model"))
      : asRow("answers", async (signal) => {
          for (const { ask, contains } of questions) {
            const found = await answered(target, model, ask, signal)
            if (!contains.every((word) => lower(found).includes(lower(word))))
              return row(
                "answers",
                "fail",
                `${JSON.stringify(ask)}: ${JSON.stringify(found.slice(0, 120))}`,
                {
                  expected: contains.join(", "),
                  reference: itself,
                },
              )
          }
          return row("answers", "pass", `${counted(questions.length, "question")} with one right answer`, {
            reference: itself,
          })
        }),
    asRow("repeat", async (signal) => {
      const [one, two] = [
        await answered(target, model, repeated, signal),
        await answered(target, model, repeated, signal),
      ]
      const same = one === two && one !== ""
      return row(
        "repeat",
        same ? "pass" : "fail",
        same ? "the same greedy reply twice" : "two greedy replies differ, or are empty",
        {
          reference: itself,
        },
      )
    }),
  ])

const spoken = async (
  target: Target,
  model: string,
  fields: object,
  signal: AbortSignal,
): Promise<Buffer> => {
  const chunks: Array<Buffer> = []
  let bytes = 0
  const body = JSON.stringify({ model, response_format: "wav", ...fields })
  await exchange(
    target,
    { path: "/v1/audio/speech", type: "application/json", body, signal },
    {
      onChunk: (chunk) => {
        bytes += chunk.length
        if (bytes > mostAudioBytes) throw new Error("speech without an end")
        chunks.push(chunk)
      },
    },
  )
  return Buffer.concat(chunks)
}

/** Seconds of a WAV file of the node: 24 kHz, 16 bits, mono, a header of 44 bytes. */
const secondsOf = (wav: Buffer): number => (wav.length - 44) / 2 / 24_000

const sentence = "The birch canoe slid on the smooth planks."
const words = sentence.split(" ").length

/** Words a second of speech that a person can follow. A guess with much room. */
const pace = { least: 1, most: 6 }
/** Duration at half speed, relative to that at full speed: 2, with room for pauses that do not grow. */
const slower = { least: 1.5, most: 2.5 }
/** Share of words that may be misunderstood. A guess: noise is misunderstood completely, and built-in weights by a quarter. */
const mostMisunderstood = 0.5

const within = (value: number, { least, most }: { readonly least: number; readonly most: number }): boolean =>
  value >= least && value <= most

/**
 * No publisher says how long a sentence lasts, so speech is compared with itself and with a model that transcribes.
 * @param listener a model of the same run whose transcript was right
 */
export const speechRows = (
  target: Target,
  entry: Pick<ModelEntry, "id" | "speech">,
  listener: string | undefined,
): Effect.Effect<ReadonlyArray<Row>> => {
  const voice = entry.speech?.voices[0] ?? "default"
  const say = (signal: AbortSignal, more: object = {}) =>
    spoken(target, entry.id, { voice, input: sentence, ...more }, signal)
  return Effect.all([
    asRow("pace", async (signal) => {
      const seconds = secondsOf(await say(signal))
      const slow = secondsOf(await say(signal, { speed: 0.5 })) / seconds
      const found = `${(words / seconds).toFixed(2)} words a second; at half speed ${slow.toFixed(2)} times as long`
      return within(words / seconds, pace) && within(slow, slower)
        ? row("pace", "pass", found, { reference: itself })
        : row("pace", "fail", found, {
            expected: `${pace.least} to ${pace.most} words a second, ${slower.least} to ${slower.most} times as long`,
            reference: itself,
          })
    }),
    listener === undefined
      ? Effect.succeed(row("understood", "none", "no model that transcribes was proven in this run"))
      : asRow("understood", async (signal) => {
          const upload = {
            bytes: await say(signal),
            fileName: "speech.wav",
            type: "audio/wav",
            text: sentence,
          }
          const found = await transcribed(target, listener, upload, signal)
          const errors = wordErrorsOf({ spoken: sentence, transcribed: found })
          const text = `${errors.wrong} of ${errors.words} words misunderstood by ${listener}`
          return errors.wrong <= mostMisunderstood * errors.words
            ? row("understood", "pass", text, { reference: itself })
            : row("understood", "fail", text, {
                expected: `at most ${100 * mostMisunderstood} %`,
                reference: itself,
              })
        }),
  ])
}

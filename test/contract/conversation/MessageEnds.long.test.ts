// `semantic_vad` with a language model that is asked whether the user's message has ended: its word decides, within the bounds of the
// silences; where it has none, the score of words and sound stands. The rules are tested in virtual time (SemanticEnds.test.ts). Here it is
// seen on a node: how long silences are in real time, which a busy machine changes, only in `npm run test:long`.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { completenessWeights } from "#audio/SpeechWeights.ts"
import { completeness } from "#domain/activity/Completeness.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { type Ending, endingOf, heardAt, heldOut } from "../../../bench/turns/Endings.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener } from "../../support/clients/LiveClient.ts"
import { orgWith, textRequestsOf } from "../../support/nodes/Ledger.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

const model = (id: string, messageEnd?: Readonly<Record<string, unknown>>) => ({
  ...fakeModel,
  id,
  ...(messageEnd === undefined ? {} : { options: { messageEnd } }),
})
const models = [
  model("ends", { probability: 1 }),
  model("waits", { probability: 1e-6 }),
  model("slow", { probability: 1, tookMs: 5_000 }),
  model("dawdles", { probability: 1e-6, tookMs: 60_000, dawdles: true }),
  model("fails", { probability: 1, fails: true }),
  model("dumb"),
]
/** Silence that is heard before the words are known: more than the first preview needs, less than any that ends a turn. */
const heardMs = 160
/** The only word that the recogniser knows. */
const word = "stone"

const perMs = 16

let node: TestNode
/** Sentences whose end sounds complete, with that word, and not. */
let complete: Ending
let incomplete: Ending
beforeAll(async () => {
  const sentences = await Effect.runPromise(Effect.scoped(heldOut))
  const text = `${word} `.repeat(14).trim()
  /** The first of them whose score lies between these. */
  const endingOfScore = (least: number, most: number): Ending => {
    for (const [i, sentence] of sentences.slice(0, 12).entries()) {
      const ending = endingOf(sentence, sentence.samples.length, i * 31)
      const heard = heardAt(ending)
      // Some voices end in a breath that is heard as speech.
      if (heard === undefined || heard.at - ending.end > 100 * perMs) continue
      const score = completeness(completenessWeights, text, heard.ending)
      if (score !== undefined && score > least && score < most) return ending
    }
    throw new Error("no sentence has such a score")
  }
  // Far from 0.5, at which the turn ends soon or late, and near enough for the model's word.
  complete = endingOfScore(0.6, 0.75)
  incomplete = endingOfScore(0.25, 0.4)
  node = await startNode({ models: [listener({ words: [word] }), ...models, fakeVoice] })
  await untilLoaded(node, "listener", "fake-voice", ...models.map(({ id }) => id))
})
afterAll(() => node.stop())

const pcm24 = (samples: Int16Array): Buffer =>
  Buffer.from(s16ToBytes(new Resampler(16_000, 24_000).push(samples)))

const counted = async (name: string, label = "") =>
  [...(await node.metrics())].reduce(
    (sum, [series, value]) => (series.includes(name) && series.includes(label) ? sum + value : sum),
    0,
  )
const asked = (outcome = "") => counted("conversation_message_ends_total", outcome)
const prepared = () => counted("conversation_answers_prepared_total")

const opened = async (id: string, turns: Readonly<Record<string, unknown>>, key?: string) => {
  const client = await ConversationClient.open(node, id, key)
  client.update({
    audio: { input: { turn_detection: { type: "semantic_vad", ...turns } }, output: { pacing: "none" } },
  })
  await client.nth("session.updated")
  return client
}

/** Says this up to some silence, its end at the pace at which it is spoken: a silence that has passed at once is not looked into. */
const saying = async (client: ConversationClient, { end, samples }: Pick<Ending, "end" | "samples">) => {
  const pcm = pcm24(samples.subarray(0, end + heardMs * perMs))
  const late = 400 * 48
  await client.speak(pcm.subarray(0, -late))
  await client.speak(pcm.subarray(-late), true)
}

/** A silence is judged within some ten milliseconds, or never. */
const judgedWithinMs = 5_000

/** A conversation in which this was said and the silence behind it was judged, which `count` shows. */
const judged = async (
  id: string,
  said: Ending,
  open: () => Promise<ConversationClient>,
  count: () => Promise<number> = prepared,
): Promise<ConversationClient> => {
  for (let tries = 0; tries < 10; tries++) {
    const client = await open()
    const before = await count()
    await saying(client, said)
    // An answer is prepared once the silence is judged for the last time. On a busy machine the silence may have come all at once, which is
    // not judged: then the sentence is said again, in another conversation.
    const isJudged = await eventually(async () => (await count()) > before, id, judgedWithinMs).then(
      () => true,
      () => false,
    )
    if (isJudged) return client
    client.close()
  }
  throw new Error(`the silence was never judged: ${id}`)
}

/** Says this and is silent; how long the silence was that ended the turn, milliseconds. */
const silenceAfter = async (
  id: string,
  said: Ending,
  turns: Readonly<Record<string, unknown>>,
): Promise<number> => {
  const { end } = said
  const client = await judged(id, said, () => opened(id, turns))
  await client.speak(Buffer.alloc(2_600 * 48))
  const { audio_end_ms } = await client.nth("input_audio_buffer.speech_stopped")
  client.close()
  return audio_end_ms - end / perMs
}

/**
 * The same where the model was asked and answered in time. On a busy machine its answer may come after the silence that it is for: then
 * the score stands, and the sentence is said again.
 */
const judgedSilenceAfter = async (...said: Parameters<typeof silenceAfter>): Promise<number> => {
  for (let tries = 0; tries < 10; tries++) {
    const late = await asked('"late"')
    const silenceMs = await silenceAfter(...said)
    // It is counted as late a moment after the turn has ended. `waits` says that nothing ends so soon, so its answer had not come.
    const isLate = said[0] === "waits" && silenceMs <= heardMs
    if (!isLate && (await asked('"late"')) === late) return silenceMs
  }
  throw new Error("each answer was late")
}

const decisive = { language_model: 5 }

it("ends the turn soon where the message is probably over, and waits where it is not", async () => {
  for (const said of [complete, incomplete]) {
    expect(await judgedSilenceAfter("ends", said, decisive)).toBeLessThan(330)
    const waited = await judgedSilenceAfter("waits", said, decisive)
    expect(waited).toBeGreaterThan(700)
    expect(waited).toBeLessThan(1_400)
  }
  expect(await judgedSilenceAfter("waits", complete, { ...decisive, eagerness: "low" })).toBeLessThan(2_200)
})

it("asks nothing by default", async () => {
  const before = await asked()
  const client = await judged("by default", complete, () => opened("ends", {}))
  client.close()
  expect(await asked()).toBe(before)
})

it.each([
  ["fails", "failed"],
  ["slow", "slow"],
  ["dawdles", "late"],
  ["dumb", "template"],
])("counts why there is no answer: %s is %s", async (id, outcome) => {
  const client = await judged(
    id,
    complete,
    () => opened(id, decisive),
    () => asked(`"${outcome}"`),
  )
  client.close()
})

it("asks about a text once, also when the silence is judged again, and charges nothing for it", async () => {
  // An organization of its own: answers of the other tests' conversations are charged a moment after these have closed.
  const key = await orgWith(node, "asks-once", 1_000_000)
  let questions = 0
  const open = async () => {
    // No turn is answered: what is charged as text could only be the question.
    const one = await opened("waits", { ...decisive, create_response: false }, key)
    questions = await asked()
    return one
  }
  const client = await judged("asks once", complete, open, asked)
  // In real time, until the turn ends.
  void client.speak(Buffer.alloc(2_600 * 48), true)
  await client.nth("input_audio_buffer.speech_stopped")
  client.close()
  expect(await asked()).toBe(questions + 1)
  expect(await textRequestsOf(node, "asks-once")).toBe(0)
})

it("speech that goes on ends the question", async () => {
  const slow = await opened("ends", decisive)
  const { end, samples } = complete
  for (let turn = 0; turn < 3; turn++) await slow.speak(pcm24(samples.subarray(0, end + heardMs * perMs)))
  await slow.speak(Buffer.alloc(2_600 * 48))
  await slow.nth("response.done")
  slow.close()
  await eventually(
    async () =>
      [...(await node.metrics())].every(([name, value]) => !name.includes("slots_busy") || value === 0),
    "no sequence is left busy",
  )
})

it("the field is a number from 0 to 10, which the session shows", async () => {
  const client = await opened("ends", { language_model: 2.5 })
  expect((await client.nth("session.updated")).session).toMatchObject({
    audio: { input: { turn_detection: { type: "semantic_vad", language_model: 2.5 } } },
  })
  for (const language_model of [-1, 11, true]) {
    client.update({ audio: { input: { turn_detection: { type: "semantic_vad", language_model } } } })
  }
  await client.nth("error", 3)
  for (const { error } of client.of("error")) expect(error.param).toContain("language_model")
  client.close()
})

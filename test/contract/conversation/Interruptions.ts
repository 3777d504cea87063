// Interruptions of spoken answers at random moments, by a client that plays in real time: what the conversation keeps, against the words
// that were heard by the times that the voice tells.
import { monitorEventLoopDelay } from "node:perf_hooks"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import type { TestNode } from "../../support/nodes/TestNode.ts"

const bytesPerMs = 48

const words =
  "morning water window seven people under better table money paper never little river summer garden yellow music doctor city winter letter number evening mother".split(
    " ",
  )

/** A whole number below `most`, the same for the same seed and index. */
const drawn = (seed: number, index: number, most: number): number => {
  let state = (Math.imul(seed + 1, 2_654_435_761) ^ Math.imul(index + 7, 40_503)) >>> 0
  state = Math.imul(state ^ (state >>> 15), 2_246_822_519) >>> 0
  return ((state ^ (state >>> 13)) >>> 0) % most
}

/** Sentences of 5 to 9 words, with commas. */
const textOf = (seed: number): string => {
  let text = ""
  for (let sentence = 0; sentence < 4; sentence++) {
    const length = 5 + drawn(seed, sentence, 5)
    const parts = Array.from(
      { length },
      (_, at) => words[drawn(seed, 100 + sentence * 10 + at, words.length)]!,
    )
    const comma = 1 + drawn(seed, 50 + sentence, length - 2)
    text += `${parts.map((word, at) => (at === comma ? `${word},` : word)).join(" ")}. `
  }
  return text.trim()
}

export interface Interruption {
  /** Milliseconds of the answer that the client had played. */
  readonly playedMs: number
  /** What the conversation kept. */
  readonly kept: string
  /** The answer's words with the times, milliseconds, at which they begin in its audio. */
  readonly told: ReadonlyArray<{ readonly word: string; readonly startMs: number }>
  /** The answer's text. */
  readonly text: string
  /**
   * How far `playedMs` may be from the server's clock, milliseconds: the longest time for which this process, which is server and client,
   * did nothing on a busy machine. 0 where the client says the position.
   */
  readonly slackMs: number
  /** The position that the server cut at, where the client said one. */
  readonly cutMs: number | undefined
}

/** One answer, interrupted after about `afterMs` of playback: with a `truncate` of the client, or by speech alone. */
export const interrupted = async (
  node: TestNode,
  seed: number,
  afterMs: number,
  how: "truncate" | "speech",
): Promise<Interruption> => {
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  const client = await ConversationClient.open(node)
  const text = textOf(seed)
  client.say(`fake:${JSON.stringify({ tokens: 1, text })}`)
  client.send({ type: "response.create" })
  await client.nth("response.output_audio.delta")
  const startedMs = performance.now()
  /** The player begins with the first audio and plays what has come. */
  const playedMs = (): number => Math.min(performance.now() - startedMs, client.audio.length / bytesPerMs)
  await new Promise((resolve) => setTimeout(resolve, afterMs))
  const item_id = client.of("response.output_audio.delta")[0]!.item_id
  let position: number
  let cutMs: number | undefined
  if (how === "truncate") {
    position = Math.floor(playedMs())
    client.send({ type: "conversation.item.truncate", item_id, content_index: 0, audio_end_ms: position })
    cutMs = (await client.nth("conversation.item.truncated")).audio_end_ms
  } else {
    // The detector learns from 0.3 s of quiet how loud the room is; then the user speaks until it is noticed.
    const speech = client.speak(Buffer.concat([Buffer.alloc(300 * bytesPerMs), voice(1)]), true)
    await client.nth("input_audio_buffer.speech_started")
    position = playedMs()
    await client.nth("response.done")
    await speech
  }
  client.send({ type: "conversation.item.retrieve", item_id })
  const { item } = await client.nth("conversation.item.retrieved")
  const [part] = (item as unknown as { content: ReadonlyArray<{ transcript: string }> }).content
  const told = client.of("response.output_audio_transcript.delta").map((event) => ({
    word: event.delta.trim(),
    startMs: (event as unknown as { start_time: number }).start_time * 1000,
  }))
  client.close()
  delays.disable()
  return {
    slackMs: how === "truncate" ? 0 : delays.max / 1e6,
    playedMs: position,
    kept: part?.transcript ?? "",
    told,
    text,
    cutMs,
  }
}

/** How far what was kept is from what was heard. */
export const judged = ({ kept, playedMs, slackMs, text, told }: Interruption) => {
  const keptWords = kept.split(/\s+/).filter((word) => word !== "")
  const startOf = (index: number): number => told[index]?.startMs ?? Number.POSITIVE_INFINITY
  return {
    isPrefix: text.startsWith(kept.trim()) && keptWords.every((word, at) => word === text.split(" ")[at]),
    /** Words that were kept and had not begun. */
    unheard: keptWords.filter((_, at) => startOf(at) > playedMs + slackMs).length,
    /** Words that were lost, though the next one had begun. */
    lost: told.filter((_, at) => at >= keptWords.length && startOf(at + 1) <= playedMs - slackMs).length,
    /** Between the moment of the interruption and the words kept: 0 where it lies in the last one kept or the pause behind it. */
    offMs: Math.max(
      0,
      (keptWords.length === 0 ? 0 : startOf(keptWords.length - 1)) - playedMs - slackMs,
      playedMs - slackMs - startOf(keptWords.length + 1),
    ),
  }
}

// Transducers on a node: files in every format, as a stream and as a job, and live sessions, with generated exports of three layouts that
// hear tones (ToneEars). Live captions are only ever appended to, and end in the file's text.
import { rmSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import { captionAfter, deltas, lastWord, openLive, speak, wavOf } from "../../support/clients/LiveClient.ts"
import { poll, post } from "../../support/clients/TranscriptionClient.ts"
import {
  endOf,
  randomTones,
  type SpokenTone,
  type ToneEars,
  toneAudio,
  toneEars,
  toneWords,
} from "../../support/engines/ToneEars.ts"
import { uses } from "../../support/groups/Uses.ts"
import { eventually, startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const layouts = ["sherpa", "tdt", "zipformer"] as const

let ears: ReadonlyArray<ToneEars> = []
let node: TestNode
beforeAll(async () => {
  uses("weights", "a native engine")
  ears = layouts.map((layout) => toneEars({ layout, options: { pieceSeconds: layout === "tdt" ? 20 : 10 } }))
  node = await startNode({
    models: ears.map(({ spec }, i) => ({
      id: `ears-${layouts[i]}`,
      kind: "transcription",
      adapter: spec.adapter,
      files: Object.fromEntries(Object.entries(spec.files).map(([role, source]) => [role, { source }])),
      options: spec.options,
      price: { perMinute: 4_000 },
    })),
  })
})
afterAll(async () => {
  await node?.stop()
  for (const { folder } of ears) rmSync(folder, { recursive: true })
})

interface Verbose {
  readonly text: string
  readonly language: string
  readonly duration: number
  readonly segments: ReadonlyArray<{ readonly start: number; readonly end: number; readonly text: string }>
  readonly words?: ReadonlyArray<{ readonly word: string; readonly start: number; readonly end: number }>
}

const played = (tones: ReadonlyArray<SpokenTone>) => {
  const pcm = Buffer.from(s16ToBytes(toneAudio(tones, endOf(tones) + 0.6)))
  return { pcm, wav: wavOf(pcm) }
}

describe.each(layouts)("%s", (layout) => {
  const model = `ears-${layout}`
  const tones = randomTones(36, 21)
  const { pcm, wav } = played(tones)
  const ask = (query: Record<string, string>, fields: ReadonlyArray<readonly [string, string]> = []) =>
    post(node, wav, { query: { model, ...query }, fields })

  /** Answers that several tests compare with: a model hears the same each time, so each is requested once. */
  let json: Promise<{ readonly text: string }> | undefined
  let verbose: Promise<Verbose> | undefined
  const heardJson = () => {
    json ??= ask({ sync: "true" }).then((response) => response.json() as Promise<{ text: string }>)
    return json
  }
  const heardVerbose = () => {
    const granularities = ["word", "segment"].map((value) => ["timestamp_granularities[]", value] as const)
    verbose ??= ask({ sync: "true", response_format: "verbose_json" }, granularities).then((response) => {
      expect(response.status).toBe(200)
      return response.json() as Promise<Verbose>
    })
    return verbose
  }

  it("hears a file, and says when each word was said", async () => {
    const { language, segments, text, words = [] } = await heardVerbose()
    expect(language).toBe("en")
    const heard = text.toLowerCase().replaceAll("!", "").split(" ")
    expect(heard).toEqual(tones.map(({ word }) => toneWords[word]))
    expect(words.map(({ word }) => word).join(" ")).toBe(text)
    words.forEach(({ start }, i) => expect(Math.abs(start - tones[i]!.start)).toBeLessThan(0.13))
    expect(
      segments
        .map((segment) => segment.text)
        .join("")
        .trim(),
    ).toBe(text)
    // Segments, and so captions, begin and end with words.
    const starts = new Set(words.map(({ start }) => start))
    for (const { end, start } of segments) {
      expect(starts.has(start)).toBe(true)
      expect(end - start).toBeLessThan(7.2)
    }
  })

  it("marks that are removed leave the words their times", async () => {
    const marked = (await heardVerbose()).words!
    const response = await ask({ sync: "true", response_format: "verbose_json", punctuation: "false" }, [
      ["timestamp_granularities[]", "word"],
    ])
    const plain = ((await response.json()) as Verbose).words!
    expect(plain.map(({ word }) => word)).toEqual(marked.map(({ word }) => word.replace("!", "")))
    expect(plain.map(({ start }) => start)).toEqual(marked.map(({ start }) => start))
  })

  it("srt and vtt have a cue for each segment", async () => {
    const { segments } = await heardVerbose()
    const srt = await (await ask({ sync: "true", response_format: "srt" })).text()
    const vtt = await (await ask({ sync: "true", response_format: "vtt" })).text()
    expect(srt.match(/ --> /g)).toHaveLength(segments.length)
    expect(vtt.match(/ --> /g)).toHaveLength(segments.length)
    expect(vtt).toContain(segments[0]!.text.trim())
  })

  it("a stream and a job say the same", async () => {
    const { text } = await heardJson()
    const events = parseEventStream(await (await ask({ stream: "true" })).text())
    const parsed = events
      .slice(0, -1)
      .map((event) => JSON.parse(event) as { type: string; delta?: string; text?: string })
    expect(parsed.at(-1)).toMatchObject({ type: "transcript.text.done", text })
    expect(
      parsed
        .map(({ delta = "" }) => delta)
        .join("")
        .trim(),
    ).toBe(text)
    const accepted = (await (await ask({})).json()) as { job_id: string }
    await eventually(
      async () => (await poll({ base: node.base, key: node.keys.dev }, accepted.job_id)).status === 200,
      "the job is done",
    )
    const { body } = await poll({ base: node.base, key: node.keys.dev }, accepted.job_id)
    expect(body.text).toBe(text)
  })

  it("a live session ends in the file's text, and captions of streaming models are only appended to", async () => {
    const { text } = await heardJson()
    const client = await openLive(node, { model, window_s: "0.5" })
    const second = 32_000
    for (let at = 0; at < pcm.length; at += second) {
      speak(client, pcm.subarray(at, at + second), 640)
      await client.until(
        () => ((deltas(client).at(-1)?.audio_ms as number | undefined) ?? 0) >= (at - second) / 32,
      )
    }
    client.send({ type: "stop" })
    const word = await lastWord(client)
    expect(word).toMatchObject({ type: "transcript.text.done", text })
    const captions = deltas(client)
    expect(captions.length).toBeGreaterThan(5)
    if (layout === "tdt") return
    let shown = ""
    for (const caption of captions) {
      expect(caption.op).toBe("append")
      shown = captionAfter(shown, caption as never)
    }
    expect(text.startsWith(shown)).toBe(true)
    expect(shown.length).toBeGreaterThan(text.length - 30)
    expect(captions.at(-1)!.stable_chars as number).toBeGreaterThan(shown.length - 12)
  })

  if (layout !== "tdt")
    it("a live session without a window has a caption for each chunk", async () => {
      const chunkBytes = ears[layouts.indexOf(layout)]!.chunkSamples! * 2
      const client = await openLive(node, { model })
      // A chunk needs a little of the audio behind it.
      for (let chunks = 0; chunks < 10; chunks++) {
        speak(client, pcm.subarray(chunks * chunkBytes, (chunks + 1) * chunkBytes), 640)
        await client.until(() => deltas(client).length >= chunks)
      }
      expect(deltas(client).length).toBeLessThanOrEqual(10)
      client.send({ type: "stop" })
      await lastWord(client)
    })

  it("four live sessions at once end each in its file's text", async () => {
    const said = await Promise.all(
      [31, 32, 33, 34].map(async (seed) => {
        const { pcm: own, wav: file } = played(randomTones(10, seed))
        const client = await openLive(node, { model, window_s: "0.5" })
        for (let from = 0; from < own.length; from += 16_000) {
          speak(client, own.subarray(from, from + 16_000), 640)
          await new Promise((resolve) => setImmediate(resolve))
        }
        client.send({ type: "stop" })
        const { text } = await lastWord(client)
        const asked = await post(node, file, { query: { model, sync: "true" } })
        return [text, ((await asked.json()) as { text: string }).text]
      }),
    )
    for (const [live, file] of said) expect(live).toBe(file)
    expect(new Set(said.map(([live]) => live)).size).toBe(4)
  })

  it("include[]=logprobs gives each token of the text, in json and in a stream", async () => {
    interface Token {
      readonly token: string
      readonly bytes: ReadonlyArray<number>
      readonly logprob: number
    }
    const include = [["include[]", "logprobs"]] as const
    const json = (await (await ask({ sync: "true" }, include)).json()) as {
      text: string
      logprobs: ReadonlyArray<Token>
    }
    expect(
      json.logprobs
        .map(({ token }) => token)
        .join("")
        .trim(),
    ).toBe(json.text)
    for (const { bytes, logprob, token } of json.logprobs) {
      expect(Buffer.from(bytes).toString("utf8")).toBe(token)
      expect(logprob).toBeLessThanOrEqual(0)
    }
    const events = parseEventStream(await (await ask({ stream: "true" }, include)).text())
    const parsed = events
      .slice(0, -1)
      .map((event) => JSON.parse(event) as { type: string; logprobs: ReadonlyArray<Token> })
    expect(parsed.at(-1)).toMatchObject({ type: "transcript.text.done", logprobs: json.logprobs })
    expect(parsed.slice(0, -1).flatMap(({ logprobs }) => logprobs)).toEqual(json.logprobs)
    expect(await heardJson()).not.toHaveProperty("logprobs")
  })

  it("another language is refused", async () => {
    const response = await ask({ sync: "true", language: "de" })
    expect(response.status).toBe(400)
    expect(JSON.stringify(await response.json())).toContain("language")
  })
})

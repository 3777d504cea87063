// What stock clients of the realtime protocol do, beyond what its documents say, and what they need in return: pace, early ends of
// function calls, positions past the end, missing truncates, ids that come back. StockConversations runs some of them unmodified.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { voice } from "../../support/audio/Voice.ts"
import { ConversationClient } from "../../support/clients/ConversationClient.ts"
import { listener, noise } from "../../support/clients/LiveClient.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { brokenOrders } from "../../support/wire/ConversationOrders.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [listener(), fakeModel, fakeVoice] })
  await untilLoaded(node, "listener", "fake", "fake-voice")
})
afterAll(() => node.stop())

const script = (steps: Readonly<Record<string, unknown>>) => `fake:${JSON.stringify(steps)}`
const look = { type: "function", name: "look", parameters: { type: "object", properties: {} } }
/** A minute of speech: longer than a busy machine takes to interrupt it. */
const long = Array.from({ length: 100 }, (_, at) => `word${at} here.`).join(" ")
const unpaced = { audio: { output: { pacing: "none" } } }
const open = () => ConversationClient.open(node)

const answered = async (client: ConversationClient, text: string, count = 1) => {
  client.say(script({ tokens: 1, text }))
  client.send({ type: "response.create" })
  return (await client.nth("response.done", count)).response
}

describe("clients that judge by the clock what was heard (agents-js)", () => {
  it("get a function call at once, while speech before it waits to be played", async () => {
    const client = await open()
    client.update({ tools: [look] })
    // A minute of speech, of which a second is sent ahead, and then a call.
    client.say(script({ tokens: 1, text: long, calls: [{ name: "look", arguments: {} }] }))
    client.send({ type: "response.create" })
    await client.nth("response.function_call_arguments.done")
    const spoken = client.of("response.output_audio.delta").length
    await client.nth("response.output_audio.delta", spoken + 1)
    // Enough of it.
    client.send({ type: "response.cancel" })
    await client.nth("response.done")
    // A call is added before it is complete: clients that run it at both events would run it twice.
    const added = client.of("response.output_item.added").map(({ item }) => item)
    expect(added.find(({ type }) => type === "function_call")).toMatchObject({ status: "in_progress" })
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("get items without audio, and with a transcript that is there from the beginning", async () => {
    const client = await open()
    client.update({
      audio: { input: { turn_detection: null, transcription: { model: "gpt-4o-mini-transcribe" } } },
    })
    await client.speak(noise(2, 5))
    client.send({ type: "input_audio_buffer.commit" })
    const { item_id } = await client.nth("conversation.item.input_audio_transcription.completed")
    const [added] = client.of("conversation.item.added")
    expect(added!.item).toMatchObject({ content: [{ type: "input_audio", transcript: null }] })
    client.send({ type: "conversation.item.retrieve", item_id })
    const [{ item }] = [await client.nth("conversation.item.retrieved" as never)] as unknown as [
      { item: { content: ReadonlyArray<object> } },
    ]
    expect(Object.keys(item.content[0]!).toSorted()).toEqual(["transcript", "type"])
    client.close()
  })

  it("get the log probabilities of transcripts where they ask for them, and give keywords", async () => {
    const include = ["item.input_audio_transcription.logprobs"]
    const keywords = ["Zorvan Mirelda"]
    const transcripts: Array<string> = []
    for (const more of [{}, { keywords }]) {
      const client = await open()
      const transcription = { model: "gpt-4o-mini-transcribe", ...more }
      client.update({ include, audio: { input: { turn_detection: null, transcription } } })
      const { session } = await client.nth("session.updated")
      expect(session).toMatchObject({ include, audio: { input: { transcription: more } } })
      await client.speak(noise(2, 5))
      client.send({ type: "input_audio_buffer.commit" })
      const { logprobs, transcript } = await client.nth(
        "conversation.item.input_audio_transcription.completed",
      )
      const tokens = logprobs ?? []
      expect(
        tokens
          .map(({ token }) => token)
          .join("")
          .trim(),
      ).toBe(transcript)
      const deltas = client.of("conversation.item.input_audio_transcription.delta")
      expect(deltas.flatMap((delta) => delta.logprobs ?? [])).toEqual(tokens)
      transcripts.push(transcript)
      client.close()
    }
    expect(transcripts[0]).not.toBe("")
    expect(transcripts[1]).not.toBe(transcripts[0])
  })

  it("find `interrupt_response` in every description of a session, whatever they leave out", async () => {
    const client = await open()
    client.update({ audio: { input: { turn_detection: { type: "semantic_vad" } } }, tracing: "auto" })
    const { session } = await client.nth("session.updated")
    expect(session).toMatchObject({
      audio: { input: { turn_detection: { create_response: true, interrupt_response: true } } },
    })
    client.close()
  })
})

describe("clients that match answers to their requests (LiveKit)", () => {
  it("get their metadata back in response.created, and calls whose arguments are JSON", async () => {
    const client = await open()
    client.update({ output_modalities: ["text"], tools: [look], tool_choice: "look" })
    expect((await client.nth("session.updated")).session).toMatchObject({ tool_choice: "look" })
    client.say(script({ calls: [{ name: "look", arguments: "" }] }))
    client.send({ type: "response.create", response: { metadata: { client_event_id: "mine" } } })
    const created = await client.nth("response.created")
    expect(created.response.metadata).toEqual({ client_event_id: "mine" })
    const done = await client.nth("response.function_call_arguments.done")
    expect(JSON.parse(done.arguments)).toEqual({})
    const { response } = await client.nth("response.done")
    expect(response.output).toMatchObject([{ type: "function_call", arguments: done.arguments }])
    client.close()
  })

  it("find each item after the one before it, also where they delete one and insert others", async () => {
    const client = await open()
    const add = (id: string, previous_item_id?: string) =>
      client.send({
        type: "conversation.item.create",
        ...(previous_item_id === undefined ? {} : { previous_item_id }),
        item: { id, type: "message", role: "user", content: [{ type: "input_text", text: id }] },
      })
    for (const id of ["a", "b"]) add(id)
    add("first", "root")
    add("between", "a")
    client.send({ type: "conversation.item.delete", item_id: "b" })
    add("last")
    await client.nth("conversation.item.added", 5)
    expect(
      client.of("conversation.item.added").map(({ item, previous_item_id }) => [item.id, previous_item_id]),
    ).toEqual([
      ["a", null],
      ["b", "a"],
      ["first", null],
      ["between", "a"],
      ["last", "between"],
    ])
    client.close()
  })
})

describe("truncation", () => {
  it("past the end of an answer is its end, and no error", async () => {
    const client = await open()
    client.update(unpaced)
    const { output } = await answered(client, "Hello there.")
    const item_id = output![0]!.id!
    client.send({ type: "conversation.item.truncate", item_id, content_index: 0, audio_end_ms: 99_999 })
    expect(await client.nth("conversation.item.truncated")).toMatchObject({ item_id, audio_end_ms: 600 })
    client.send({ type: "conversation.item.retrieve", item_id })
    expect(await client.nth("conversation.item.retrieved" as never)).toMatchObject({
      item: { status: "completed", content: [{ transcript: "Hello there." }] },
    })
    expect(client.of("error")).toEqual([])
    client.close()
  })

  it("by the node's own clock where a client sends none, until the answer has been played", async () => {
    const client = await open()
    client.update({
      audio: { ...unpaced.audio, input: { turn_detection: { type: "server_vad", create_response: false } } },
    })
    // A minute: sent at once, and played for as long as it is.
    const { output, status } = await answered(client, long)
    expect(status).toBe("completed")
    await client.speak(Buffer.concat([Buffer.alloc(24_000), voice(1)]))
    await client.nth("input_audio_buffer.speech_started")
    client.send({ type: "conversation.item.retrieve", item_id: output![0]!.id! })
    const kept = (await client.nth("conversation.item.retrieved" as never)) as unknown as {
      item: { status: string; content: ReadonlyArray<{ transcript: string }> }
    }
    // The answer was over for the client, and is cut all the same.
    expect(kept.item.status).toBe("incomplete")
    expect(long.startsWith(kept.item.content[0]!.transcript)).toBe(true)
    client.close()
  })

  it("never leaves audio of the old answer behind speech_started", async () => {
    const client = await open()
    client.say(script({ tokens: 1, text: long }))
    client.send({ type: "response.create" })
    await client.nth("response.output_audio.delta", 3)
    await client.speak(Buffer.concat([Buffer.alloc(24_000), voice(1)]))
    await client.nth("response.done")
    const after = client.types.slice(client.types.indexOf("input_audio_buffer.speech_started"))
    expect(after).not.toContain("response.output_audio.delta")
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })

  it("nor where audio is sent without a pause when the user begins to speak", async () => {
    const client = await open()
    client.update(unpaced)
    const minutes = Array.from({ length: 800 }, (_, at) => `word${at} here.`).join(" ")
    client.say(script({ tokens: 1, text: minutes }))
    client.send({ type: "response.create" })
    await client.nth("response.output_audio.delta", 3)
    await client.speak(Buffer.concat([Buffer.alloc(24_000), voice(1)]))
    expect((await client.nth("response.done")).response.status).toBe("cancelled")
    const after = client.types.slice(client.types.indexOf("input_audio_buffer.speech_started"))
    expect(after).not.toContain("response.output_audio.delta")
    expect(brokenOrders(client.client.frames)).toEqual([])
    client.close()
  })
})

describe("long conversations", () => {
  it("a turn by hand that is longer than a live session's 120 s is one item, whole", inLong, async () => {
    const client = await open()
    client.update({
      output_modalities: ["text"],
      audio: { input: { turn_detection: null, transcription: { model: "whisper-1" } } },
    })
    const part = Buffer.concat(Array.from({ length: 12 }, (_, at) => noise(3, at)))
    for (let sent = 0; sent < 6; sent++) {
      const events = client.of("conversation.item.input_audio_transcription.delta").length
      await client.speak(part)
      await client.client.until(
        () => client.of("conversation.item.input_audio_transcription.delta").length > events,
      )
    }
    client.send({ type: "input_audio_buffer.commit" })
    const { usage } = await client.nth("conversation.item.input_audio_transcription.completed")
    expect((usage as { seconds: number }).seconds).toBeCloseTo(144, 1)
    expect(client.of("input_audio_buffer.committed")).toHaveLength(1)
    expect(client.of("conversation.item.added")).toHaveLength(1)
    expect(client.of("error")).toEqual([])
    expect((await answered(client, "I have heard all of it.")).status).toBe("completed")
    client.close()
  })
})

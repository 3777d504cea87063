// A caller of a node: WebRTC with a data channel and Opus, by the caller of the harness.
import { existsSync } from "node:fs"
import { type CallerProcess, startCaller, type ToCaller } from "#harness/conversation/CallerProcess.ts"
import type { TestNode } from "../nodes/TestNode.ts"
import { eventually } from "../nodes/TestNode.ts"

interface CallPacket {
  readonly sequence: number
  readonly timestamp: number
  readonly marker: boolean
  readonly atMs: number
  /** The largest sample. */
  peak: number
}

type Frame = Readonly<Record<string, unknown>>

const root = new URL("../../../", import.meta.url)

/** Whether the library is installed: it has a package for each platform. */
export const canCall = existsSync(new URL("node_modules/node-datachannel/package.json", root))
export const noLibrary = "the WebRTC library is not installed; npm ci without --omit=optional"

export class CallClient {
  readonly #process: CallerProcess
  readonly events: Array<Frame> = []
  readonly packets: Array<CallPacket> = []
  offer = ""
  state = "new"
  isOpen = false
  isClosed = false
  /** Path of the call, of the answer's Location. */
  location = ""
  /** Milliseconds from the request to its answer. */
  answeredMs = 0

  private constructor() {
    this.#process = startCaller((message) => {
      switch (message.t) {
        case "offer":
          this.offer = message.sdp
          return
        case "open":
          this.isOpen = true
          return
        case "closed":
          this.isClosed = true
          return
        case "state":
          this.state = message.state
          return
        case "event":
          this.events.push(JSON.parse(message.text) as Frame)
          return
        case "packet":
          this.packets.push({ ...message, atMs: performance.now(), peak: 0 })
          return
        case "sound": {
          // On the way back to this machine each packet is heard when it comes.
          const packet = this.packets.at(-1)
          if (packet === undefined) return
          for (const sample of message.samples) packet.peak = Math.max(packet.peak, Math.abs(sample))
        }
      }
    })
  }

  /** A caller with its offer, which was not sent. */
  static async make(): Promise<CallClient> {
    const client = new CallClient()
    await eventually(() => client.offer !== "", "the caller has an offer")
    return client
  }

  /** A caller whose data channel is open. It calls again while the node has no room: on a busy machine captions take so long. */
  static async open(node: TestNode, key = node.keys.dev, model = "gpt-realtime"): Promise<CallClient> {
    const client = await CallClient.make()
    let reply = await client.call(node, key, model)
    await eventually(async () => {
      if (reply.status !== 503) return true
      reply = await client.call(node, key, model)
      return reply.status !== 503
    }, "the node takes the call")
    if (reply.status !== 201) throw new Error(`${reply.status}: ${await reply.text()}`)
    client.send({ t: "answer", sdp: await reply.text() })
    await eventually(() => client.of("session.created").length > 0, "the session begins")
    return client
  }

  async call(node: TestNode, key = node.keys.dev, model = "gpt-realtime"): Promise<Response> {
    const beganMs = performance.now()
    const reply = await node.fetch(`/v1/realtime/calls?model=${model}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/sdp" },
      body: this.offer,
    })
    this.answeredMs = performance.now() - beganMs
    this.location = reply.headers.get("location") ?? ""
    return reply
  }

  get id(): string {
    return this.location.split("/").at(-1) ?? ""
  }

  of(type: string): ReadonlyArray<Frame> {
    return this.events.filter((event) => event.type === type)
  }

  /** The nth event of a type. */
  async nth(type: string, nth = 1): Promise<Frame> {
    await eventually(() => this.of(type).length >= nth, `${type} comes`)
    return this.of(type)[nth - 1]!
  }

  send(message: ToCaller): void {
    this.#process.send(message)
  }

  event(event: object): void {
    this.send({ t: "event", text: JSON.stringify(event) })
  }

  /** Asks for an answer to a text. */
  ask(text: string): void {
    const content = [{ type: "input_text", text }]
    this.event({ type: "conversation.item.create", item: { type: "message", role: "user", content } })
    this.event({ type: "response.create" })
  }

  /** Ends it without a word to the node. */
  kill(): void {
    this.#process.kill()
  }

  close(): void {
    this.send({ t: "close" })
    setTimeout(() => this.kill(), 1_000).unref()
  }
}

// A client of `/v1/realtime?model=…` for tests: sends typed events, waits for answers, and reads what came.
import type { RealtimeClientEvent, RealtimeServerEvent } from "openai/resources/realtime/realtime"
import type { TestNode } from "../nodes/TestNode.ts"
import { SocketClient } from "./SocketClient.ts"

type ServerType = RealtimeServerEvent["type"]
type Of<T extends ServerType> = Extract<RealtimeServerEvent, { readonly type: T }>

export class ConversationClient {
  readonly client: SocketClient

  private constructor(client: SocketClient) {
    this.client = client
  }

  static async open(
    node: TestNode,
    model = "gpt-realtime",
    token = node.keys.dev,
  ): Promise<ConversationClient> {
    return ConversationClient.over(
      await SocketClient.open(
        `${node.socketBase}/v1/realtime?model=${encodeURIComponent(model)}&token=${token}`,
      ),
    )
  }

  /** A conversation on this socket, once it has begun. */
  static async over(client: SocketClient): Promise<ConversationClient> {
    await client.until((events) => events.length > 0)
    return new ConversationClient(client)
  }

  send(event: RealtimeClientEvent | Readonly<Record<string, unknown>>): void {
    this.client.send(event)
  }

  /** `session` besides its type. */
  update(session: Readonly<Record<string, unknown>>): void {
    this.send({ type: "session.update", session: { type: "realtime", ...session } })
  }

  say(text: string): void {
    const content = [{ type: "input_text", text }]
    this.send({ type: "conversation.item.create", item: { type: "message", role: "user", content } })
  }

  /** 24 kHz PCM in events of 20 ms each. `realTime`: at the pace at which it is spoken. */
  async speak(pcm: Buffer, realTime = false): Promise<void> {
    const bytes = 960
    const startMs = performance.now()
    for (let at = 0; at < pcm.length; at += bytes) {
      this.send({ type: "input_audio_buffer.append", audio: pcm.subarray(at, at + bytes).toString("base64") })
      const waitMs = startMs + (at / bytes) * 20 - performance.now()
      if (realTime && waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }

  of<T extends ServerType>(type: T): ReadonlyArray<Of<T>> {
    return this.client.frames.filter((event) => event.type === type) as unknown as ReadonlyArray<Of<T>>
  }

  get types(): ReadonlyArray<string> {
    return this.client.frames.map(({ type }) => String(type))
  }

  /** Waits until there are so many events of a type; the newest. */
  async nth<T extends ServerType>(type: T, count = 1): Promise<Of<T>> {
    await this.client.until(() => this.of(type).length >= count)
    return this.of(type)[count - 1]!
  }

  /** The audio of all answers so far. */
  get audio(): Buffer {
    return Buffer.concat(
      this.of("response.output_audio.delta").map(({ delta }) => Buffer.from(delta, "base64")),
    )
  }

  close(): void {
    this.client.socket.close()
  }
}

// The client of the live WebSocket, against a socket that does what the node does: nothing is lost or sent twice when a
// session reaches its limit and the next one begins, whatever pieces the audio comes in.
import fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import { LiveCaptions, LiveFailure } from "../../captions/LiveCaptions.js"

/** The node's side: one session, which ends at `limitBytes` as protocol 16.1 says. */
class FakeSocket {
  static readonly OPEN = 1
  static sessions: Array<FakeSocket> = []
  static limitBytes = Number.POSITIVE_INFINITY
  readyState = 0
  heard: Array<number> = []
  onopen = () => {}
  onmessage = (_event: { data: string }) => {}
  onclose = (_event: { code: number; reason: string }) => {}

  constructor() {
    FakeSocket.sessions.push(this)
  }

  open() {
    this.readyState = FakeSocket.OPEN
    this.onopen()
  }

  send(data: string | Uint8Array) {
    if (typeof data === "string") return this.end(1000)
    for (const byte of data) if (this.heard.length < FakeSocket.limitBytes) this.heard.push(byte)
  }

  say(event: object) {
    this.onmessage({ data: JSON.stringify(event) })
  }

  end(code: number, reason = "") {
    if (this.readyState === 3) return
    this.say({
      type: "transcript.text.done",
      text: `session ${FakeSocket.sessions.length}`,
      duration: this.heard.length / 32_000,
      language: "en",
    })
    this.close(code, reason)
  }

  close(code: number, reason = "") {
    this.readyState = 3
    this.onclose({ code, reason })
  }
}

const begin = (limitBytes = Number.POSITIVE_INFINITY) => {
  FakeSocket.sessions = []
  FakeSocket.limitBytes = limitBytes
  vi.stubGlobal("WebSocket", FakeSocket)
  const captions = new LiveCaptions({ address: () => ({ url: "ws://node", protocols: [] }) })
  return { captions, socket: () => FakeSocket.sessions.at(-1)! }
}
afterEach(() => {
  vi.unstubAllGlobals()
})

describe("a session", () => {
  it("gets what was sent before it was open, in order, and ends with the final text", async () => {
    const { captions, socket } = begin()
    captions.send(Uint8Array.from([1, 2]))
    captions.send(Uint8Array.from([3, 4]))
    socket().open()
    captions.send(Uint8Array.from([5, 6]))
    socket().say({
      type: "transcript.text.delta",
      op: "append",
      delta: "ses",
      stable_chars: 1,
      audio_ms: 0,
      rev: 1,
    })
    expect(captions.view).toMatchObject({ firm: "s", soft: "es" })
    captions.stop()
    captions.send(Uint8Array.from([7, 8]))
    expect(await captions.finished).toMatchObject({ firm: "session 1", soft: "" })
    expect(socket().heard).toEqual([1, 2, 3, 4, 5, 6])
  })

  it("that is stopped before it is open ends all the same", async () => {
    const { captions, socket } = begin()
    captions.send(Uint8Array.from([1, 2]))
    captions.stop()
    socket().open()
    expect((await captions.finished).firm).toBe("session 1")
  })

  it("that is refused or breaks fails with what is known, and keeps the text", async () => {
    const refused = begin()
    refused.socket().close(1006)
    await expect(refused.captions.finished).rejects.toMatchObject({ code: 1006, wasOpen: false })

    const broken = begin()
    broken.socket().open()
    broken.socket().say({
      type: "transcript.text.delta",
      op: "append",
      delta: "half",
      stable_chars: 0,
      audio_ms: 0,
      rev: 1,
    })
    broken.socket().say({ type: "error", error: "The model failed" })
    broken.socket().close(1011)
    const failure = await broken.captions.finished.catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(LiveFailure)
    expect(failure).toMatchObject({ code: 1011, wasOpen: true, message: "The model failed" })
    expect(broken.captions.view.soft).toBe("half")
  })
})

describe("a talk that is longer than a session", () => {
  it("is transcribed by one session after the other, every sample once", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 5, max: 60 }),
        fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
        async (pieces, limitMs, isLate) => {
          // 32 bytes are a millisecond; the limit is a whole one, as the node's is.
          const { captions, socket } = begin(limitMs * 32)
          socket().open()
          let next = 0
          const endIfFull = () => {
            const now = socket()
            if (now.readyState === FakeSocket.OPEN && now.heard.length >= limitMs * 32)
              now.end(4008, "session limit")
          }
          for (const [at, samples] of pieces.entries()) {
            captions.send(Uint8Array.from({ length: samples * 2 }, () => next++ % 251))
            // Audio goes on while the node ends a session, and while the next one opens.
            if (isLate[at]) continue
            endIfFull()
            if (socket().readyState === 0) socket().open()
          }
          for (let i = 0; i < 200; i++) {
            endIfFull()
            if (socket().readyState !== 0) continue
            socket().open()
          }
          captions.stop()
          const { firm, sessionsMs } = await captions.finished
          const heard = FakeSocket.sessions.flatMap((session) => session.heard)
          expect(heard).toEqual(Array.from({ length: next }, (_, i) => i % 251))
          expect(firm.split(" session").length).toBe(FakeSocket.sessions.length)
          expect(sessionsMs).toHaveLength(FakeSocket.sessions.length)
        },
      ),
      { numRuns: 60 },
    )
  })
})

// A live transcription session: a clip sent in real time over a WebSocket, the captions that come meanwhile, and the final
// text. The two protocols differ in their frames only (LiveProtocols.ts).
import { setTimeout as sleep } from "node:timers/promises"
import WebSocket from "ws"
import type { Clip } from "../data/Clip.ts"
import { Captions } from "../figures/Captions.ts"
import { wordErrorsOf } from "../figures/WordErrors.ts"
import { objectOf } from "./EventStream.ts"
import type { Target } from "./Exchange.ts"
import { oneLine, RequestFailed } from "./Failures.ts"
import { type LiveEvent, type LiveProtocolName, liveProtocol } from "./LiveProtocols.ts"
import type { Measured } from "./Outcome.ts"
import { openSocket, socketUrl } from "./Socket.ts"

interface LiveAsk {
  readonly model: string
  readonly clip: Clip
  readonly language: string | undefined
  readonly protocol: LiveProtocolName
  /** Audio that is sent at once, before the rest follows in real time; its captions have no lag. */
  readonly aheadSeconds?: number
  /** Called when the server has admitted the session. */
  readonly onOpen?: () => void
  /** Called with the lag of each caption, also of sessions that fail later. */
  readonly onCaptionLag?: (lagMs: number) => void
}

/** Audio of a frame: what browsers' audio worklets collect. */
const frameSeconds = 0.04
const rateHz = 16_000
const frameSamples = frameSeconds * rateHz
/** Characters of captions and final text, at most. */
const mostText = 2 ** 20

/** Fails with RequestFailed. */
export const runLive = async (
  target: Target,
  ask: LiveAsk,
  scheduledAtMs: number,
  signal: AbortSignal,
): Promise<Measured> => {
  const protocol = liveProtocol(ask.protocol, ask)
  const { clip } = ask
  /** When each frame was sent. */
  const sent: Array<number> = []
  const { aheadSeconds = 0, onCaptionLag = () => {} } = ask
  const sentAtMs = (seconds: number) =>
    seconds <= aheadSeconds && aheadSeconds > 0
      ? undefined
      : sent[Math.max(0, Math.ceil(seconds / frameSeconds - 1e-6) - 1)]
  const captions = new Captions(sentAtMs, clip.wordEnds, onCaptionLag)
  const over = Promise.withResolvers<string>()
  // Awaited below, or not at all if the session fails before.
  over.promise.catch(() => {})
  let isOver = false
  const fail = (failure: RequestFailed): void => {
    isOver = true
    over.reject(failure)
  }
  const limitMs = target.timeoutMs + 1000 * clip.seconds
  const timer = setTimeout(
    () => fail(new RequestFailed("timeout", `no end within ${limitMs / 1000} s`)),
    limitMs,
  )
  const onAbort = () => fail(new RequestFailed("unfinished", "the run ended before the session"))
  signal.addEventListener("abort", onAbort)
  let socket: WebSocket | undefined
  try {
    if (signal.aborted) onAbort()
    const onEvent = (event: LiveEvent, atMs: number): void => {
      if ((event.caption?.length ?? 0) > mostText)
        fail(new RequestFailed("too large", "captions without an end"))
      if (event.failure !== undefined) fail(new RequestFailed("error event", oneLine(event.failure)))
      if (event.caption !== undefined) captions.shown(event.caption, atMs, event.coveredSeconds)
      if (event.final !== undefined) {
        isOver = true
        over.resolve(event.final)
      }
    }
    const opening = openSocket(socketUrl(target, protocol.path), target, (data, isBinary) => {
      const atMs = performance.now()
      const event = isBinary ? undefined : objectOf(String(data))
      if (event === undefined) return fail(new RequestFailed("wrong reply", "a frame that is not JSON"))
      onEvent(protocol.read(event), atMs)
    })
    // The run may end during the handshake; the socket that opens after that is not left open.
    opening.then(
      (opened) => {
        if (isOver) opened.terminate()
      },
      () => {},
    )
    socket = await Promise.race([
      opening,
      over.promise.then(() => Promise.reject(new RequestFailed("wrong reply", "a result without a session"))),
    ])
    const onClose = (why: string) =>
      fail(new RequestFailed("closed early", oneLine(`the session was closed${why}`)))
    ask.onOpen?.()
    socket.on("close", (code, reason) => onClose(` with ${code} ${String(reason)}`))
    // A close frame may have come with the answer to the handshake.
    if (socket.readyState !== WebSocket.OPEN) onClose("")
    for (const frame of protocol.begin) socket.send(frame)
    const startMs = performance.now()
    for (let at = 0; at < clip.samples.length && !isOver; at += frameSamples) {
      // A frame can be sent when its last sample was spoken.
      const dueMs = startMs + ((at + frameSamples) * 1000) / rateHz - 1000 * aheadSeconds
      const waitMs = dueMs - performance.now()
      if (waitMs > 0) await Promise.race([sleep(waitMs), over.promise])
      if (isOver) break
      socket.send(protocol.audio(clip.samples, at, frameSamples))
      sent.push(performance.now())
    }
    const stoppedMs = performance.now()
    for (const frame of protocol.end) if (!isOver) socket.send(frame)
    const text = await over.promise
    const endAtMs = performance.now()
    const words = wordErrorsOf({
      spoken: clip.text,
      transcribed: text.slice(0, 10 * clip.text.length + 1_000),
    })
    const flicker = captions.flicker(text)
    return {
      figures: {
        e2e: endAtMs - scheduledAtMs,
        final: endAtMs - stoppedMs,
        audio: clip.seconds,
        ...(flicker === undefined ? {} : { flicker }),
        ...(words.words === 0 ? {} : { wer: words.wrong / words.words }),
      },
      pooled: { caption_lag: captions.captionLags, word_lag: captions.wordLags },
      ...(words.words === 0 ? {} : { words }),
    }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener("abort", onAbort)
    socket?.terminate()
  }
}

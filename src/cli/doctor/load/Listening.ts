// Transcription requests of the load client: a file, live sessions that send audio in real time, and sessions that are
// only opened to count how many the node admits.
import { setTimeout as sleep } from "node:timers/promises"
import { isAborted, postFile, upgrade } from "./Http.ts"
import type {
  AdmissionResult,
  AdmissionTask,
  LiveResult,
  LiveTask,
  Target,
  TranscribeResult,
  TranscribeTask,
} from "./Tasks.ts"

export const runTranscribe = async (target: Target, task: TranscribeTask): Promise<TranscribeResult> => {
  const signal = AbortSignal.timeout(task.deadlineMs)
  const beganMs = performance.now()
  const query = new URLSearchParams({ model: task.model, sync: "true", response_format: "json" })
  const path = `/v1/audio/transcriptions?${query}`
  await postFile(target, { path, signal, name: "speech.wav", file: task.wav })
  return { tookMs: performance.now() - beganMs }
}

const livePath = (model: string, token?: string): string => {
  const query = new URLSearchParams({ model, ...(token === undefined ? {} : { token }) })
  return `/v1/audio/transcriptions/ws?${query}`
}

/** 16 kHz, 16 bits. */
const bytesPerSecond = 32_000
const frameSeconds = 0.1

interface LiveEvent {
  readonly type?: string
  readonly audio_ms?: number
  readonly error?: unknown
}

interface Session {
  readonly lagsMs: ReadonlyArray<number>
  readonly finalMs: number | undefined
  readonly end: "final" | "refused" | "failed"
}

/** At most `bytes` bytes from position `at` of audio that repeats. */
const pieceOf = (pcm: Uint8Array, at: number, bytes: number): Uint8Array => {
  const from = at % pcm.length
  return pcm.subarray(from, Math.min(pcm.length, from + bytes))
}

/** One live session from the first frame to the final result. Never rejects. */
const speaker = async (
  target: Target,
  task: LiveTask,
  delayMs: number,
  signal: AbortSignal,
): Promise<Session> => {
  const lagsMs: Array<number> = []
  /** For each sent frame, its end in milliseconds of audio and the time. */
  const sent: Array<{ readonly audioMs: number; readonly atMs: number }> = []
  let stoppedMs: number | undefined
  let finalMs: number | undefined
  let failed = false
  let wasOpen = false
  await sleep(delayMs)
  const socket = new WebSocket(`ws://127.0.0.1:${target.port}${livePath(task.model, target.key)}`)
  const over = Promise.withResolvers<void>()
  socket.onerror = () => {
    failed = true
    over.resolve()
  }
  socket.onclose = () => over.resolve()
  socket.onmessage = ({ data }) => {
    const event = JSON.parse(String(data)) as LiveEvent
    if (event.type === "transcript.text.delta") {
      const frame = sent.find(({ audioMs }) => audioMs >= (event.audio_ms ?? 0))
      const isInRealTime = (event.audio_ms ?? 0) > task.aheadSeconds * 1000
      if (frame !== undefined && isInRealTime) lagsMs.push(performance.now() - frame.atMs)
    } else if (event.type === "transcript.text.done") {
      if (stoppedMs !== undefined) finalMs = performance.now() - stoppedMs
      over.resolve()
    } else if (event.type === "error") {
      failed = true
      over.resolve()
    }
  }
  signal.addEventListener("abort", () => over.resolve())
  const opened = new Promise<void>((resolve) => {
    socket.onopen = () => {
      wasOpen = true
      resolve()
    }
  })
  await Promise.race([opened, over.promise])
  let isOver = false
  void over.promise.then(() => {
    isOver = true
  })
  const totalBytes = (task.aheadSeconds + task.seconds) * bytesPerSecond
  const beganMs = performance.now()
  let at = 0
  while (at < totalBytes && !isOver && !failed && !signal.aborted) {
    const dueMs = beganMs + (at / bytesPerSecond - task.aheadSeconds) * 1000
    const waitMs = dueMs - performance.now()
    if (waitMs > 1) await sleep(waitMs)
    if (socket.readyState !== WebSocket.OPEN) break
    const piece = pieceOf(task.pcm, at, frameSeconds * bytesPerSecond)
    socket.send(piece)
    at += piece.length
    sent.push({ audioMs: Math.floor((at / bytesPerSecond) * 1000), atMs: performance.now() })
  }
  if (socket.readyState === WebSocket.OPEN && !isOver) {
    stoppedMs = performance.now()
    socket.send('{"type":"stop"}')
    await over.promise
  }
  socket.close()
  if (!wasOpen) return { lagsMs, finalMs, end: "refused" }
  return { lagsMs, finalMs, end: failed ? "failed" : "final" }
}

export const runLive = async (target: Target, task: LiveTask): Promise<LiveResult> => {
  const signal = AbortSignal.timeout(task.deadlineMs)
  const sessions = await Promise.all(
    Array.from({ length: task.speakers }, (_, at) =>
      // Spread over a second: windows of real sessions do not end at the same moment.
      speaker(target, task, (at * 1000) / task.speakers, signal),
    ),
  )
  return {
    captionLagMs: sessions.flatMap(({ lagsMs }) => lagsMs),
    finalMs: sessions.flatMap(({ finalMs }) => (finalMs === undefined ? [] : [finalMs])),
    refused: sessions.filter(({ end }) => end === "refused").length,
    failed: sessions.filter(({ end }) => end === "failed").length,
  }
}

export const runAdmission = async (target: Target, task: AdmissionTask): Promise<AdmissionResult> => {
  const signal = AbortSignal.timeout(task.deadlineMs)
  const open: Array<() => void> = []
  try {
    while (open.length < task.most && !signal.aborted) {
      const { close, status } = await upgrade(target, livePath(task.model))
      if (status !== 101) return { admitted: open.length, refused: status === 503 }
      open.push(close)
    }
    return { admitted: open.length, refused: false }
  } catch (error) {
    if (isAborted(signal, error)) return { admitted: open.length, refused: false }
    throw error
  } finally {
    for (const close of open) close()
  }
}

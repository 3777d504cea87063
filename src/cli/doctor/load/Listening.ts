// Transcription requests of the load client: a file, live sessions that send audio in real time, and sessions that are
// only opened to count how many the node admits.
import { setTimeout as sleep } from "node:timers/promises"
import type { WebSocket } from "ws"
import { listenRateHz } from "#domain/audio/Audio.ts"
import { isUnfinished, RequestFailed } from "#harness/client/Failures.ts"
import { liveProtocol } from "#harness/client/LiveProtocols.ts"
import { runLive as liveSession } from "#harness/client/LiveRequest.ts"
import { openSocket, socketUrl } from "#harness/client/Socket.ts"
import { transcriptOf } from "#harness/client/TranscriptionRequest.ts"
import { makeClip } from "#harness/data/Clip.ts"
import type { Run } from "./Tasks.ts"

/** What is said in the audio does not matter here. */
const clipOf = (samples: Int16Array) => makeClip("speech", samples, "")

export const runTranscribe: Run<"transcribe"> = async (target, { deadlineMs, model, samples }) => {
  const ask = { model, clip: clipOf(samples), language: undefined, stream: false }
  const { endAtMs, sentAtMs } = await transcriptOf(target, ask, AbortSignal.timeout(deadlineMs))
  return { tookMs: endAtMs - sentAtMs }
}

/** The first seconds of audio that repeats. */
const repeated = (samples: Int16Array, seconds: number): Int16Array => {
  const out = new Int16Array(Math.floor(seconds * listenRateHz))
  for (let at = 0; at < out.length; at += samples.length)
    out.set(samples.subarray(0, Math.min(samples.length, out.length - at)), at)
  return out
}

interface Session {
  readonly lagsMs: ReadonlyArray<number>
  readonly finalMs: number | undefined
  readonly end: "final" | "refused" | "failed"
}

export const runLive: Run<"live"> = async (target, task) => {
  const { aheadSeconds, deadlineMs, model, samples, seconds, speakers } = task
  const signal = AbortSignal.timeout(deadlineMs)
  const clip = clipOf(repeated(samples, aheadSeconds + seconds))
  const speaker = async (delayMs: number): Promise<Session> => {
    const lagsMs: Array<number> = []
    let isAdmitted = false
    const ask = {
      model,
      clip,
      language: undefined,
      protocol: "edgewise",
      aheadSeconds,
      onOpen: () => {
        isAdmitted = true
      },
      onCaptionLag: (lagMs: number) => void lagsMs.push(lagMs),
    } as const
    await sleep(delayMs)
    try {
      const { figures } = await liveSession(target, ask, performance.now(), signal)
      return { lagsMs, finalMs: figures.final, end: "final" }
    } catch (error) {
      if (!isAdmitted) return { lagsMs, finalMs: undefined, end: "refused" }
      // A session that the deadline ended has no final result.
      return { lagsMs, finalMs: undefined, end: isUnfinished(error) ? "final" : "failed" }
    }
  }
  const sessions = await Promise.all(
    // Spread over a second: windows of real sessions do not end at the same moment.
    Array.from({ length: speakers }, (_, at) => speaker((at * 1000) / speakers)),
  )
  return {
    captionLagMs: sessions.flatMap(({ lagsMs }) => lagsMs),
    finalMs: sessions.flatMap(({ finalMs }) => (finalMs === undefined ? [] : [finalMs])),
    refused: sessions.filter(({ end }) => end === "refused").length,
    failed: sessions.filter(({ end }) => end === "failed").length,
  }
}

export const runAdmission: Run<"admission"> = async (target, { deadlineMs, model, most }) => {
  const untilMs = performance.now() + deadlineMs
  const open: Array<WebSocket> = []
  const { path } = liveProtocol("edgewise", { model, language: undefined })
  try {
    while (open.length < most && performance.now() < untilMs)
      open.push(await openSocket(socketUrl(target, path), target, () => {}))
    return { admitted: open.length, refused: false }
  } catch (error) {
    if (!(error instanceof RequestFailed) || error.key === "unreachable") throw error
    return { admitted: open.length, refused: error.key === "503" }
  } finally {
    for (const socket of open) socket.terminate()
  }
}

// WebRTC calls: how much later an answer is heard than over a WebSocket, and what the process of calls needs for each call that speaks and listens.
import { createSocket } from "node:dgram"
import { readFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import { Effect } from "effect"
import { processorMsOf } from "#actors/device/ProcessorTime.ts"
import { PeerProcess } from "#calls/PeerProcess.ts"
import { type FromPeers, maxMessageBytes } from "#calls/PeerWire.ts"
import { readOffer } from "#domain/calls/Offer.ts"
import { atRealtimeRate, realtimeHz } from "#harness/client/RealtimeRate.ts"
import { type CallerProcess, startCaller } from "#harness/conversation/CallerProcess.ts"
import type { Clip } from "#harness/data/Clip.ts"
import { atMost, beyond, figureOf, type Part, type Readings, readingsOf } from "#harness/report/Figure.ts"
import { ChildFailed } from "../support/Child.ts"

/** A UDP port that nothing uses. */
export const freeUdpPort = Effect.promise(
  () =>
    new Promise<number>((resolve) => {
      const socket = createSocket("udp4")
      socket.bind(0, "127.0.0.1", () => {
        const { port } = socket.address()
        socket.close(() => resolve(port))
      })
    }),
)

/** The goal: the way, the pace of packets and the browser's buffer. */
const beyondSocketMs = 60

export const besideSocket = (overSocket: Readings, overCall: Readings): Part => ({
  title: "Voice to voice over a call, beside a WebSocket",
  method:
    "each round a new conversation of one turn over each, said in real time, server_vad of 500 ms, client and node on the same machine; the caller " +
    "has no jitter buffer, so 55 ms are added, that of Chromium as measured",
  figures: [figureOf(overSocket), figureOf(overCall), beyond(overCall, overSocket, atMost(beyondSocketMs))],
})

/** Of one process, without what it shares with others through mapped files, MB. */
const ownMb = (pid: number): number =>
  Number(/^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN) / 1_024

interface LoadPlan {
  readonly calls: number
  readonly seconds: number
}

/** Speech is given a second at a time. */
const pieceMs = 1_000

interface Loads {
  readonly threadShare: number
  readonly mb: number
  /** Of each caller, a second; 50 are sent. */
  readonly packets: number
}

const loadOf = async (
  { calls, seconds }: LoadPlan,
  port: number,
  clips: ReadonlyArray<Clip>,
): Promise<Loads> => {
  const callers: Array<CallerProcess> = []
  let received = 0
  const open = new Set<number>()
  const up = Promise.withResolvers<void>()
  const allOpen = Promise.withResolvers<void>()
  const fail = (detail: string): void => {
    up.reject(new Error(detail))
    allOpen.reject(new Error(detail))
  }
  const take = (message: FromPeers): void => {
    if (message.t === "up") up.resolve()
    if (message.t === "answer") callers[message.id]?.send({ t: "answer", sdp: message.sdp })
    if (message.t === "refused") fail(message.problem)
    if (message.t !== "open") return
    open.add(message.id)
    if (open.size === calls) allOpen.resolve()
  }
  const terms = { port, bindAddress: "127.0.0.1", addresses: ["127.0.0.1"] }
  const peers = new PeerProcess({ terms, home: undefined, onMessage: take, onExit: fail })
  try {
    await up.promise
    const pid = peers.pid ?? 0
    const before = ownMb(pid)
    for (let id = 0; id < calls; id++) {
      callers.push(
        startCaller((message) => {
          if (message.t === "packet") received++
          if (message.t !== "offer") return
          const offer = readOffer(message.sdp, maxMessageBytes)
          if ("problem" in offer) fail(offer.problem)
          else peers.send({ t: "offer", id, ...offer })
        }),
      )
    }
    await allOpen.promise
    const speech = Int16Array.from(clips.flatMap((clip) => [...atRealtimeRate(clip.samples)]))
    const pieceSamples = (realtimeHz * pieceMs) / 1_000
    const pieceAt = (nth: number) =>
      Int16Array.from({ length: pieceSamples }, (_, at) => speech[(nth * pieceSamples + at) % speech.length]!)
    let cpuMs = Number.NaN
    let beganMs = 0
    let receivedBefore = 0
    // The first two seconds are those of compilation.
    for (let second = 0; second < seconds + 2; second++) {
      const samples = pieceAt(second)
      for (const [id, caller] of callers.entries()) {
        peers.send({ t: "speech", id, samples })
        caller.send({ t: "say", samples })
      }
      await setTimeout(pieceMs)
      if (second !== 1) continue
      cpuMs = processorMsOf(pid) ?? Number.NaN
      beganMs = performance.now()
      receivedBefore = received
    }
    const usedMs = (processorMsOf(pid) ?? Number.NaN) - cpuMs
    const tookMs = performance.now() - beganMs
    return {
      threadShare: usedMs / tookMs / calls,
      mb: (ownMb(pid) - before) / calls,
      packets: ((received - receivedBefore) * 1_000) / tookMs / calls,
    }
  } finally {
    for (const caller of callers) caller.kill()
    peers.kill()
  }
}

export const callLoads = (plan: LoadPlan, clips: ReadonlyArray<Clip>): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const port = yield* freeUdpPort
    const { mb, packets, threadShare } = yield* Effect.tryPromise({
      try: () => loadOf(plan, port, clips),
      catch: (cause) => new ChildFailed({ child: "process of calls", detail: String(cause) }),
    })
    return {
      title: "What a call needs in the process of calls",
      method: `${plan.calls} callers, each a process on the same machine, speak and are spoken to without a pause for ${plan.seconds} s; what the process of calls has more than without calls, for each call`,
      figures: [
        figureOf(readingsOf("processor time, share of a thread", "%", [100 * threadShare]), atMost(3)),
        figureOf(readingsOf("memory", "MB", [mb]), atMost(4)),
        figureOf(readingsOf("packets to each caller", "1/s", [packets])),
      ],
      notes: [
        "on a machine that leaves each caller fewer than 50 packets a second the other figures are too low",
      ],
    }
  })

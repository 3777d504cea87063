// The process of calls: all WebRTC connections of a node over one UDP port. It parses what strangers send, in native code, so it is confined
// and knows no credential; the library must not run in two threads of a process either. Opus, the order of packets and the pace of playing are here, so
// that neither they disturb the gateway's event loop nor it them.
import type { FromPeers, PeerTerms, ToPeers } from "../PeerWire.ts"
import { CallAudio } from "./CallAudio.ts"
import { packetMs } from "./OutgoingAudio.ts"
import { Peer } from "./Peer.ts"

const terms = JSON.parse(process.argv[2] ?? "") as PeerTerms

const peers = new Map<number, Peer>()

/** Messages of one tick of the event loop travel as one. */
let unsent: Array<FromPeers> = []

const flush = (): void => {
  const messages = unsent
  unsent = []
  process.send?.(messages, undefined, undefined, () => {})
}

const tell = (message: FromPeers): void => {
  if (unsent.length === 0) setImmediate(flush)
  unsent.push(message)
}

/** After a longer pause of this process, packets that are overdue are left out: the timestamps go on. */
const mostBehind = 5

let dueMs = performance.now() + packetMs
const tick = (): void => {
  const nowMs = performance.now()
  if (nowMs - dueMs > mostBehind * packetMs) dueMs = nowMs
  for (; dueMs <= nowMs; dueMs += packetMs) for (const peer of peers.values()) peer.tick()
  setTimeout(tick, dueMs - performance.now())
}
tick()

const open = async (offer: Extract<ToPeers, { readonly t: "offer" }>): Promise<void> => {
  const { id, payloadType, ssrc } = offer
  let audio: CallAudio | undefined
  try {
    const heard = (samples: Int16Array) => tell({ t: "heard", id, samples })
    audio = await CallAudio.make({ payloadType, ssrc, heard })
    const peer = new Peer(offer, audio, terms, tell, () => peers.delete(id))
    peers.set(id, peer)
    peer.answer(offer)
  } catch {
    audio?.close()
    // The other calls go on.
    tell({ t: "refused", id, problem: "cannot be answered" })
  }
}

/** Messages are carried out in their order, one after the other. */
let carriedOut = Promise.resolve()
process.on("message", (messages: ReadonlyArray<ToPeers>) => {
  carriedOut = carriedOut.then(async () => {
    for (const message of messages) {
      if (message.t === "offer") await open(message)
      else peers.get(message.id)?.handle(message)
    }
  })
})
// The gateway has ended.
process.on("disconnect", () => process.exit(0))

// Opus is compiled before the first call.
const opus = await CallAudio.make({ payloadType: 0, ssrc: undefined, heard: () => {} })
opus.close()
tell({ t: "up" })

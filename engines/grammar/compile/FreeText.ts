// The automaton of a stage: any text until one of some markers. It is the one of Aho and Corasick, so no byte is read
// twice and markers that overlap are found where the first of them ends.
import type { ReplyShape } from "../Expression.ts"
import type { Networks } from "./Networks.ts"

const utf8 = new TextEncoder()

interface Place {
  readonly next: Map<number, number>
  /** Place of the longest proper end of what was read that begins a marker. */
  back: number
  whole: boolean
}

/** The tree of the markers, in the order of their lengths; place 0 is the root. */
const placesOf = (markers: ReadonlyArray<Uint8Array>): ReadonlyArray<Place> => {
  const places: Array<Place> = [{ next: new Map(), back: 0, whole: false }]
  for (const marker of markers) {
    let at = 0
    for (const byte of marker) {
      const known = places[at]!.next.get(byte)
      if (known === undefined) places[at]!.next.set(byte, places.length)
      at = known ?? places.push({ next: new Map(), back: 0, whole: false }) - 1
    }
    places[at]!.whole = true
  }
  const order = [0]
  for (const at of order)
    for (const [byte, child] of places[at]!.next) {
      order.push(child)
      if (at !== 0) places[child]!.back = follow(places, places[at]!.back, byte)
      if (places[places[child]!.back]!.whole) places[child]!.whole = true
    }
  return places
}

const follow = (places: ReadonlyArray<Place>, from: number, byte: number): number => {
  for (let at = from; ; at = places[at]!.back) {
    const next = places[at]!.next.get(byte)
    if (next !== undefined) return next
    if (at === 0) return 0
  }
}

/** The state before the stage; `to` is the state after a marker, `final` the end of the reply. */
export const freeText = (
  networks: Networks,
  { until, mayEnd }: ReplyShape["stages"][number],
  to: number,
  final: number,
): number => {
  const markers = until.filter((marker) => marker.length > 0).map((marker) => utf8.encode(marker))
  const places = placesOf(markers)
  const bytes = [...new Set(markers.flatMap((marker) => [...marker]))].sort((a, b) => a - b)
  const states = places.map(({ whole }) => (whole ? to : networks.state()))
  places.forEach(({ whole }, at) => {
    if (whole) return
    const state = states[at]!
    networks.free.add(state)
    if (mayEnd) networks.epsilons[state]!.push(final)
    let low = 0
    for (const byte of bytes) {
      if (low < byte) networks.edge(state, low, byte - 1, states[0]!)
      networks.edge(state, byte, byte, states[follow(places, at, byte)]!)
      low = byte + 1
    }
    if (low < 256) networks.edge(state, low, 255, states[0]!)
  })
  return states[0]!
}

// G.711, the audio of telephones: 8 kHz, one byte a sample, companded by the µ-law or the A-law.
import alawmulaw from "alawmulaw"

export const g711RateHz = 8_000

/** Which law. */
export type G711 = "pcmu" | "pcma"

const codecs = { pcmu: alawmulaw.mulaw, pcma: alawmulaw.alaw } as const

/** s16 samples, a new array. */
export const fromG711 = (bytes: Uint8Array, law: G711): Int16Array => codecs[law].decode(bytes)

/** One byte a sample. */
export const toG711 = (samples: Int16Array, law: G711): Uint8Array => codecs[law].encode(samples)

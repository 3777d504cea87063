// What the first bytes of an Opus packet say (RFC 6716 3.1): how much audio it holds. Pure.

/** Samples of a frame at 48 kHz by configuration: SILK 10 to 60 ms, hybrid 10 and 20 ms, CELT 2.5 to 20 ms. */
const frameSamples = (config: number): number => {
  if (config < 12) return [480, 960, 1_920, 2_880][config % 4]!
  if (config < 16) return [480, 960][config % 2]!
  return [120, 240, 480, 960][config % 4]!
}

/** Most samples of a packet: 120 ms at 48 kHz. */
const mostSamples = 5_760

/** Samples at 48 kHz of a packet; undefined for what is no Opus packet. */
export const opusSamples = (packet: Uint8Array): number | undefined => {
  const [toc, count = 0] = packet
  if (toc === undefined) return undefined
  const code = toc & 3
  const frames = code === 0 ? 1 : code === 3 ? count & 0x3f : 2
  if (code === 3 && packet.length < 2) return undefined
  const samples = frames * frameSamples(toc >> 3)
  return samples === 0 || samples > mostSamples ? undefined : samples
}

/** 20 ms of silence. */
export const opusSilence = new Uint8Array([0xf8, 0xff, 0xfe])

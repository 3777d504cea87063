// Speech as it arrives, in pieces of any size.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { AudioReply } from "#harness/client/AudioReply.ts"
import { makeClip } from "#harness/data/Clip.ts"

/** Half a second of silence and half a second of sound at 16 kHz. */
const samples = Int16Array.from({ length: 16_000 }, (_, at) =>
  at < 8_000 ? 0 : at % 2 === 0 ? 9_000 : -9_000,
)

const pieces = (all: Uint8Array, sizes: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const out: Array<Buffer> = []
  for (let at = 0, nth = 0; at < all.length; nth++) {
    const size = sizes[nth % sizes.length]!
    out.push(Buffer.from(all.subarray(at, at + size)))
    at += size
  }
  return out
}

const sizesOf = fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 5 })

/** Pieces arrive a millisecond apart. */
const readAll = (reply: AudioReply, list: ReadonlyArray<Buffer>): AudioReply => {
  for (const [at, piece] of list.entries()) reply.read(piece, at)
  return reply
}

describe.each([
  ["PCM", s16ToBytes(samples), () => new AudioReply(16_000, true)],
  ["WAV", makeClip("a", samples, "").bytes, () => new AudioReply(24_000, false)],
  ["WAV where PCM was asked for", makeClip("a", samples, "").bytes, () => new AudioReply(24_000, true)],
])("%s", (_, all, start) => {
  it("has its duration and its first sound, however it is split", () => {
    fc.assert(
      fc.property(sizesOf, (sizes) => {
        const list = pieces(all, sizes)
        const reply = readAll(start(), list)
        expect(reply.deliveries.at(-1)?.audioMs).toBeCloseTo(1000, 6)
        // The piece with the first whole loud sample.
        let seen = 0
        const until = all.length - 8_000 * 2 + 2
        const expected = list.findIndex((piece) => {
          seen += piece.length
          return seen >= until
        })
        expect(reply.firstSoundMs).toBe(expected)
        expect(reply.firstByteMs).toBeLessThanOrEqual(expected)
      }),
    )
  })
})

it("finds no sound in silence", () => {
  const reply = readAll(new AudioReply(24_000, true), [Buffer.alloc(9_600)])
  expect(reply.firstSoundMs).toBeUndefined()
  expect(reply.deliveries.at(-1)?.audioMs).toBe(200)
})

it.each([
  ["an MP3", Buffer.from("ID3 rest of it"), false, "compressed"],
  ["Ogg", Buffer.from("OggS rest of it"), true, "compressed"],
  ["JSON for WAV", Buffer.from('{"error": 1}'), false, "neither a WAV"],
  ["another RIFF file", Buffer.from("RIFF....AVI ...."), true, "no WAV"],
  [
    "endless chunks",
    Buffer.concat([Buffer.from("RIFF\0\0\0\0WAVEjunk\xff\xff\xff\x7f", "latin1"), Buffer.alloc(70_000)]),
    true,
    "without samples",
  ],
])("refuses %s", (_, bytes, isPcm, message) => {
  expect(() => new AudioReply(24_000, isPcm).read(bytes, 0)).toThrow(message)
})

it("random bytes after RIFF never throw anything else", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (rest) => {
      try {
        new AudioReply(24_000, false).read(Buffer.concat([Buffer.from("RIFF....WAVE"), rest]), 0)
      } catch (cause) {
        expect((cause as Error).constructor.name).toBe("RequestFailed")
      }
    }),
    { numRuns: 500 },
  )
})

// Damaged pictures: files of every format with bytes changed, cut, repeated or joined with those of others.
import fc from "fast-check"
import { gif, palettePng, plain, png, quarters } from "../support/pictures/PictureFiles.ts"
import { fixture } from "./PictureHarness.ts"

const names = ["rgb.jpg", "progressive.jpg", "cmyk.jpg", "turned6.jpg", "lossy.webp", "half-lossy.webp"]
const seeds = (): ReadonlyArray<Buffer> => [
  ...[...names, "lossless.webp", "animated.webp", "palette.bmp", "half.bmp", "interlaced.png"].map(fixture),
  png(20, 20, quarters(20, 20), { bits: 16, colour: 6 }),
  palettePng(
    9,
    9,
    [
      [255, 0, 0, 128],
      [0, 0, 0, 0],
    ],
    (x) => x % 2,
  ),
  gif(9, 9, [quarters(9, 9), plain(0, 0, 0)]),
]

type Change = (bytes: Buffer) => Buffer

const at = (bytes: Buffer, share: number): number => Math.floor(share * bytes.length)
const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
/** Most damage that matters is in headers, which are short. */
const place = fc.oneof(share, fc.double({ min: 0, max: 0.15, noNaN: true }))

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(place, fc.constantFrom(0, 1, 0x7f, 0x80, 0xff)).map(
    ([where, value]): Change =>
      (bytes) => {
        if (bytes.length > 0) bytes[at(bytes, where)] = value
        return bytes
      },
  ),
  fc.tuple(place, fc.nat(7)).map(
    ([where, bit]): Change =>
      (bytes) => {
        if (bytes.length > 0) bytes[at(bytes, where)]! ^= 1 << bit
        return bytes
      },
  ),
  fc.tuple(place, fc.constantFrom(0xff_ff_ff_ff, 0x7f_ff_ff_ff, 0, 65_536)).map(
    ([where, value]): Change =>
      (bytes) => {
        if (bytes.length > 4) bytes.writeUInt32BE(value, Math.min(at(bytes, where), bytes.length - 4))
        return bytes
      },
  ),
  share.map(
    (where): Change =>
      (bytes) =>
        bytes.subarray(0, at(bytes, where)),
  ),
  fc.tuple(share, share).map(
    ([from, to]): Change =>
      (bytes) =>
        Buffer.concat([bytes.subarray(0, at(bytes, from)), bytes.subarray(at(bytes, to))]),
  ),
)

/** One change, which some files survive, or several. */
const damage = fc.oneof(fc.tuple(change), fc.array(change, { minLength: 1, maxLength: 4 }))

/** A damaged file. */
export const damaged = fc.tuple(fc.nat(99), damage).map(([seed, changes]) => {
  const files = seeds()
  const file = Buffer.from(files[seed % files.length] as Buffer)
  return changes.reduce((bytes, one) => Buffer.from(one(bytes)), file)
})

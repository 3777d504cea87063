// Every kind of picture file becomes the pixels that its maker meant. The fixtures are made with ImageMagick 6.9, libwebp 1.2 and
// ExifTool 12 from base.png: 32x16 pixels, a red, a green, a blue and a white quarter.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { gif, palettePng, plain, png, quarters } from "../support/pictures/PictureFiles.ts"
import { fixture, middles, type Seen, startPictures } from "./PictureHarness.ts"

let pictures: Awaited<ReturnType<typeof startPictures>>
beforeAll(async () => {
  pictures = await startPictures()
})
afterAll(() => pictures.stop())

const [red, green, blue, white] = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
  [255, 255, 255],
] as const
const base = [red, green, blue, white]
const half = (colour: ReadonlyArray<number>) => colour.map((value) => (value + 255) / 2)

/** Of lossy formats the values differ by the rounding of their colours. */
const expectColours = (seen: Seen, wanted: ReadonlyArray<ReadonlyArray<number>>, within: number) => {
  const found = middles(seen)
  const apart = wanted.flatMap((colour, at) =>
    colour.map((value, of) => Math.abs(value - (found[at]?.[of] ?? -999))),
  )
  expect([Math.max(...apart) <= within, found]).toEqual([true, found])
}

describe("the colours are right:", () => {
  it.each<
    [name: string, bytes: () => Uint8Array, wanted: ReadonlyArray<ReadonlyArray<number>>, within: number]
  >([
    ["PNG", () => fixture("base.png"), base, 0],
    ["interlaced PNG", () => fixture("interlaced.png"), base, 0],
    ["16-bit PNG", () => png(32, 16, quarters(32, 16), { bits: 16 }), base, 0],
    ["palette BMP", () => fixture("palette.bmp"), base, 0],
    ["JPEG", () => fixture("rgb.jpg"), base, 6],
    ["progressive JPEG", () => fixture("progressive.jpg"), base, 6],
    ["CMYK JPEG", () => fixture("cmyk.jpg"), base, 6],
    ["lossy WebP", () => fixture("lossy.webp"), base, 12],
    ["lossless WebP", () => fixture("lossless.webp"), base, 0],
    ["the first frame of a WebP", () => fixture("animated.webp"), base, 12],
    ["the first frame of a GIF", () => gif(32, 16, [quarters(32, 16), plain(0, 0, 0)]), base, 0],
    ["half transparent PNG", () => png(32, 16, plain(255, 0, 0, 128), { colour: 6 }), [half(red)], 1],
    ["16 bits of it", () => png(32, 16, plain(255, 0, 0, 128), { colour: 6, bits: 16 }), [half(red)], 1],
    ["transparent grey", () => png(32, 16, plain(0, 0, 0, 0), { colour: 4 }), [white], 0],
    ["16 bits of it", () => png(32, 16, plain(0, 0, 0, 51), { colour: 4, bits: 16 }), [[204, 204, 204]], 1],
    ["grey", () => png(32, 16, plain(100, 0, 0), { colour: 0 }), [[100, 100, 100]], 0],
    ["16-bit grey", () => png(32, 16, plain(100, 0, 0), { colour: 0, bits: 16 }), [[100, 100, 100]], 1],
    ["half transparent lossy WebP", () => fixture("half-lossy.webp"), base.map(half), 12],
    ["half transparent lossless WebP", () => fixture("half-lossless.webp"), base.map(half), 2],
    ["half transparent BMP", () => fixture("half.bmp"), base.map(half), 2],
    ["a GIF whose red is transparent", () => fixture("transparent.gif"), [white, green, blue, white], 0],
    ["a palette with half of a colour", () => palettePng(8, 8, [[255, 0, 0, 128]], () => 0), [half(red)], 1],
  ])("%s", async (_, bytes, wanted, within) => {
    expectColours(await pictures.seen(bytes()), wanted, within)
  })

  it("a grey JPEG", async () => {
    const found = middles(await pictures.seen(fixture("grey.jpg")))
    for (const [r, g, b] of found) expect([g, b]).toEqual([r, r])
    expect(found[3]?.[0]).toBeGreaterThan(250)
    expect(found[2]?.[0]).toBeLessThan(found[0]?.[0] ?? 0)
  })
})

describe("the orientation of a camera is applied", () => {
  it.each([
    [1, [red, green, blue, white]],
    [2, [green, red, white, blue]],
    [3, [white, blue, green, red]],
    [4, [blue, white, red, green]],
    [5, [red, blue, green, white]],
    [6, [blue, red, white, green]],
    [7, [white, green, blue, red]],
    [8, [green, white, red, blue]],
  ])("%i", async (orientation, wanted) => {
    const seen = await pictures.seen(fixture(`turned${orientation}.jpg`))
    expect([seen.width, seen.height]).toEqual(orientation < 5 ? [32, 16] : [16, 32])
    expectColours(seen, wanted, 6)
  })
})

describe("the size", () => {
  it.each([
    [32, 16, 512, 32, 16],
    [32, 16, 511, 31, 16],
    [320, 160, 800, 40, 20],
    [1, 1, 1, 1, 1],
    [4_000, 1, 1_000, 1_000, 1],
    [1, 4_000, 1_000, 1, 1_000],
    [300, 299, 100, 10, 10],
  ])("%i x %i within %i pixels is %i x %i", async (width, height, most, fittedWidth, fittedHeight) => {
    const seen = await pictures.seen(png(width, height, quarters(width, height)), most)
    expect([seen.width, seen.height, seen.rgb.length]).toEqual([
      fittedWidth,
      fittedHeight,
      fittedWidth * fittedHeight * 3,
    ])
  })
})

it("the hash is of the pixels and the size, not of the file", async () => {
  const [once, again, other] = await Promise.all([
    pictures.seen(png(4, 2, plain(1, 2, 3))),
    pictures.seen(png(4, 2, plain(1, 2, 3), { colour: 6 })),
    pictures.seen(png(2, 4, plain(1, 2, 3))),
  ])
  expect(again.hash).toBe(once.hash)
  expect(other.hash).not.toBe(once.hash)
  expect(once.hash).toMatch(/^[0-9a-f]{64}$/)
})

it("a transparent edge has no dark fringe when it shrinks", async () => {
  // Transparent black beside opaque white: the hidden colour must not be seen.
  const edge = png(64, 64, (x) => (x < 32 ? [0, 0, 0, 0] : [255, 255, 255, 255]), { colour: 6 })
  const { rgb } = await pictures.seen(edge, 64)
  expect(Math.min(...rgb)).toBeGreaterThanOrEqual(254)
})

// The pure parts: sizes, orientations, data: URLs and headers, over many inputs.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { JsonReader } from "#domain/json/JsonReader.ts"
import { bytesOfDataUrl } from "#domain/pictures/DataUrl.ts"
import { type Orientation, upright } from "#domain/pictures/Exif.ts"
import { fitted } from "#domain/pictures/Fit.ts"
import { pictureHeadOf } from "#domain/pictures/PictureFile.ts"
import { decodeInlinePictures, keepsPictures } from "#domain/wire/text/Pictures.ts"
import { bmp, dataUrl, gif, plain, png } from "../../support/pictures/PictureFiles.ts"

const side = fc.integer({ min: 1, max: 65_535 })

describe("a fitted size", () => {
  it("has at most the pixels, and nearly the shape", () => {
    fc.assert(
      fc.property(side, side, fc.integer({ min: 1, max: 20_000_000 }), (width, height, most) => {
        const size = fitted({ width, height }, most)
        expect(Math.min(size.width, size.height)).toBeGreaterThanOrEqual(1)
        expect(size.width * size.height).toBeLessThanOrEqual(most)
        if (width * height <= most) expect(size).toEqual({ width, height })
        // Where the short side is rounded up by half a pixel, the long one shrinks by as much, and is then rounded down.
        const scale = Math.sqrt(most / (width * height))
        if (Math.min(width, height) * scale >= 2 && scale < 1) {
          const ratio = size.width / size.height / (width / height)
          expect(Math.abs(Math.log(ratio))).toBeLessThan(2 / (Math.min(width, height) * scale))
        }
      }),
    )
  })
})

describe("an orientation", () => {
  const orientations: ReadonlyArray<Orientation> = [1, 2, 3, 4, 5, 6, 7, 8]
  /** The orientation that undoes it. */
  const inverse: Readonly<Record<Orientation, Orientation>> = {
    1: 1,
    2: 2,
    3: 3,
    4: 4,
    5: 5,
    6: 8,
    7: 7,
    8: 6,
  }

  it("is undone by its inverse, whatever the pixels", () => {
    const dims = fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 }))
    fc.assert(
      fc.property(dims, fc.constantFrom(...orientations), ([width, height], orientation) => {
        const rgb = Uint8Array.from({ length: width * height * 3 }, (_, at) => at % 251)
        const turned = upright({ width, height, rgb }, orientation)
        expect(turned.width * turned.height).toBe(width * height)
        expect(upright(turned, inverse[orientation])).toEqual({ width, height, rgb })
      }),
    )
  })
})

describe("a data: URL", () => {
  it("gives its bytes back, of any media type, with line breaks, in both alphabets", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        fc.boolean(),
        fc.boolean(),
        (bytes, breaks, isUrlSafe) => {
          const base64 = Buffer.from(bytes).toString(isUrlSafe ? "base64url" : "base64")
          const text = breaks ? (base64.match(/.{1,76}/g)?.join("\r\n") ?? "") : base64
          for (const type of ["image/png", "", "text/html;charset=utf-8"]) {
            expect(bytesOfDataUrl(`data:${type};base64,${text}`)).toEqual(bytes)
          }
        },
      ),
    )
  })

  it.each([
    "data:",
    "data:image/png,abc",
    "data:;base64",
    "data:image/png;base64x,abc",
    `data:${"a".repeat(999)};base64,`,
  ])("is refused without base64: %s", (url) =>
    expect(bytesOfDataUrl(url)).toEqual({ flaw: expect.stringContaining("with base64") }),
  )
})

describe("a header", () => {
  it("is read without an exception, whatever follows its first bytes", () => {
    const starts = [png(3, 3, plain(1, 1, 1)), bmp(3, 3, plain(1, 1, 1)), gif(3, 3, [plain(1, 1, 1)])]
    const webp = Buffer.from("RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0", "latin1")
    const jpeg = Buffer.from("ffd8ffe1001c457869660000", "hex")
    fc.assert(
      fc.property(
        fc.constantFrom(...starts, webp, jpeg),
        fc.nat(60),
        fc.uint8Array({ maxLength: 200 }),
        (start, kept, rest) => {
          const head = pictureHeadOf(Buffer.concat([start.subarray(0, kept), rest]))
          if ("flaw" in head) expect(head.flaw.length).toBeGreaterThan(5)
          else expect(head.width * head.height).toBeGreaterThan(0)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

it("of a large body are decoded in their places and nowhere else", () => {
  const long = Buffer.alloc(200_000, "picture")
  const url = dataUrl(long)
  const body = {
    messages: [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url } },
          { type: "text", text: url },
        ],
      },
      { role: "user", content: url },
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: "https://a.example/b.png" } }, null, 5],
      },
    ],
    input: [{ content: [{ type: "input_image", image_url: url }] }],
    other: url,
  }
  const bytes = new Uint8Array(long)
  const reader = new JsonReader(Buffer.from(JSON.stringify(body)), keepsPictures)
  const parsed = reader.read(() => false)
  expect(reader.keptBytes).toBe(2 * url.length)
  const value = parsed !== undefined && "value" in parsed ? parsed.value : undefined
  const decode = decodeInlinePictures(value)
  let parts = 1
  while (decode(() => true) === undefined) parts++
  expect(parts).toBeGreaterThan(4)
  expect(value).toMatchObject({
    messages: [
      { content: [{ image_url: { url: bytes } }, { text: url }] },
      { content: url },
      { content: [{ image_url: { url: "https://a.example/b.png" } }, null, 5] },
    ],
    input: [{ content: [{ image_url: bytes }] }],
    other: url,
  })
  for (const odd of [null, 5, "x", [], { messages: 5 }, { messages: [null, { content: {} }] }]) {
    expect(decodeInlinePictures(odd)(() => false)).toBe(true)
  }
})

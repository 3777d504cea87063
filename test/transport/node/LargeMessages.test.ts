// Large messages are taken out of a client's bytes, however these are cut into frames and reads; everything else passes unchanged.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { keptEnds, LargeMessages } from "#transport/node/LargeMessages.ts"

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9 } as const

const frame = (opcode: number, payload: Buffer, isLast = true, masked = true): Buffer => {
  const lengthBytes = payload.length < 126 ? 0 : payload.length < 65_536 ? 2 : 8
  const head = Buffer.alloc(2 + lengthBytes)
  head[0] = (isLast ? 0x80 : 0) | opcode
  head[1] = (masked ? 0x80 : 0) | (lengthBytes === 0 ? payload.length : lengthBytes === 2 ? 126 : 127)
  if (lengthBytes === 2) head.writeUInt16BE(payload.length, 2)
  if (lengthBytes === 8) head.writeBigUInt64BE(BigInt(payload.length), 2)
  if (!masked) return Buffer.concat([head, payload])
  const mask = Buffer.from([0x37, 0xfa, 0x21, 0x3d])
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ mask[at & 3]!)])
}

interface Seen {
  readonly passed: Buffer
  readonly messages: ReadonlyArray<readonly [Buffer, boolean]>
  readonly cut: ReadonlyArray<readonly [Buffer, Buffer, boolean]>
  readonly refused: ReadonlyArray<number>
  /** What it said to hold, part by part. */
  readonly held: ReadonlyArray<number>
  /** What came in which order: p for bytes that passed, m for a message. */
  readonly order: string
}

const mostBytes = 300_000

/** `mayHold`: bytes of a message that is not whole. */
const read = (bytes: Buffer, sizes: ReadonlyArray<number>, mayHold = 2 * mostBytes): Seen => {
  const passed: Array<Buffer> = []
  const messages: Array<readonly [Buffer, boolean]> = []
  const cut: Array<readonly [Buffer, Buffer, boolean]> = []
  const refused: Array<number> = []
  const held: Array<number> = []
  let order = ""
  const reader = new LargeMessages({
    mostBytes,
    discardedBytes: 2 * mostBytes,
    holds: (kept) => held.push(kept) > 0 && kept <= mayHold,
    pass: (piece) => {
      passed.push(Buffer.from(piece))
      order += "p"
    },
    message: (message, isBinary) => {
      messages.push([message, isBinary])
      order += "m"
    },
    tooLarge: (...ends) => {
      cut.push(ends)
      order += "m"
    },
    refuse: (code) => refused.push(code),
  })
  for (let at = 0, nth = 0; at < bytes.length; nth++) {
    const size = sizes[nth % sizes.length]!
    reader.read(Buffer.from(bytes.subarray(at, at + size)))
    at += size
  }
  return { passed: Buffer.concat(passed), messages, cut, refused, held, order: order.replace(/p+/g, "p") }
}

const reads = fc
  .array(fc.constantFrom(1, 2, 3, 13, 14, 1_000, 65_536, 65_550, 1_000_000), { minLength: 1, maxLength: 5 })
  .filter((sizes) => sizes.some((size) => size >= 1_000))

describe("what is taken", () => {
  const part = fc.oneof(
    fc.record({ kind: fc.constant("small" as const), size: fc.constantFrom(0, 1, 125, 126, 65_535) }),
    fc.record({ kind: fc.constant("ping" as const), size: fc.constantFrom(0, 125) }),
    fc.record({ kind: fc.constant("large" as const), size: fc.integer({ min: 65_536, max: 90_000 }) }),
    fc.record({ kind: fc.constant("pieces" as const), size: fc.constantFrom(0, 10, 200, 70_000) }),
  )

  it("comes whole and in its order, and the rest unchanged", () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), reads, fc.boolean(), (parts, sizes, isBinary) => {
        const bytes: Array<Buffer> = []
        const passes: Array<Buffer> = []
        const taken: Array<Buffer> = []
        let order = ""
        const pass = (one: Buffer) => {
          bytes.push(one)
          passes.push(one)
          order += "p"
        }
        const opcode = isBinary ? opcodes.binary : opcodes.text
        parts.forEach(({ kind, size }, at) => {
          const payload = Buffer.alloc(size, `${at} ab`)
          if (kind === "small") pass(frame(opcode, payload))
          else if (kind === "ping") pass(frame(opcodes.ping, payload))
          else if (kind === "large") bytes.push(frame(opcode, payload))
          else {
            bytes.push(frame(opcode, payload, false))
            pass(frame(opcodes.ping, Buffer.from("between")))
            bytes.push(frame(opcodes.continuation, payload, false), frame(opcodes.continuation, payload))
          }
          if (kind === "large" || kind === "pieces") {
            taken.push(kind === "large" ? payload : Buffer.concat([payload, payload, payload]))
            order += "m"
          }
        })
        const seen = read(Buffer.concat(bytes), sizes)
        expect(seen.refused).toEqual([])
        expect(seen.passed.equals(Buffer.concat(passes))).toBe(true)
        expect(seen.messages.map(([, binary]) => binary)).toEqual(taken.map(() => isBinary))
        expect(seen.messages.every(([message], at) => message.equals(taken[at]!))).toBe(true)
        expect(seen.order).toBe(order.replace(/p+/g, "p"))
      }),
      { numRuns: 60 },
    )
  })

  it("is not kept where it is too large: its ends remain, in whatever pieces it comes", () => {
    const text = Buffer.from(Array.from({ length: 60_000 }, (_, at) => `${at},`).join(""))
    expect(text.length).toBeGreaterThan(mostBytes)
    const whole = frame(opcodes.text, text)
    const pieces = Buffer.concat([
      frame(opcodes.text, text.subarray(0, 100), false),
      frame(opcodes.continuation, text.subarray(100, 250_000), false),
      frame(opcodes.continuation, text.subarray(250_000, text.length - 3), false),
      frame(opcodes.continuation, text.subarray(-3)),
    ])
    const next = frame(opcodes.text, Buffer.from("next"))
    for (const bytes of [whole, pieces])
      for (const sizes of [[65_536], [1_000], [10_000_000], [100, 299_950]]) {
        const { cut, messages, passed } = read(Buffer.concat([bytes, next]), sizes)
        expect(messages).toEqual([])
        expect(cut.map(([first, last, isBinary]) => [first.length, last.length, isBinary])).toEqual([
          [keptEnds, keptEnds, false],
        ])
        expect(cut[0]![0].equals(text.subarray(0, keptEnds))).toBe(true)
        expect(cut[0]![1].equals(text.subarray(-keptEnds))).toBe(true)
        expect(passed.equals(next)).toBe(true)
      }
  })
})

describe("the memory of one that has come in part", () => {
  const most = (held: ReadonlyArray<number>) => Math.max(0, ...held)

  it("is told with each part, and not for a whole one", () => {
    const whole = frame(opcodes.text, Buffer.alloc(200_000, "a"))
    const { held } = read(whole, [50_000])
    expect(held).toEqual([1, 2, 3, 4].map((nth) => 50_000 * nth - (whole.length - 200_000)))
    expect(read(frame(opcodes.text, Buffer.alloc(200_000, "a")), [1_000_000]).held).toEqual([])
  })

  it("is that of its ends where it is too large", () => {
    const { held } = read(frame(opcodes.text, Buffer.alloc(mostBytes + 100_000, "a")), [10_000])
    expect(most(held)).toBeLessThanOrEqual(mostBytes)
    expect(held.at(-1)).toBe(2 * keptEnds)
  })

  it("ends the socket where it may not be held", () => {
    const first = frame(opcodes.text, Buffer.alloc(100_000, "a"), false)
    const bytes = Buffer.concat([first, frame(opcodes.continuation, Buffer.alloc(100_000, "a"))])
    const { messages, refused } = read(bytes, [10_000], 120_000)
    expect(refused).toEqual([1013])
    expect(messages).toEqual([])
    expect(read(bytes, [10_000], 200_000).messages.length).toBe(1)
  })
})

describe("refused are", () => {
  const large = Buffer.alloc(70_000, "a")
  it.each([
    ["more bytes than are read", [frame(opcodes.text, Buffer.alloc(2 * mostBytes + 1, "a"))], 1009],
    [
      "the same in pieces",
      [
        frame(opcodes.text, Buffer.alloc(mostBytes, "a"), false),
        frame(opcodes.continuation, Buffer.alloc(mostBytes + 1, "a")),
      ],
      1009,
    ],
    [
      "a message within another",
      [frame(opcodes.text, large, false), frame(opcodes.text, Buffer.from("b"))],
      1002,
    ],
    [
      "too many pieces",
      [
        frame(opcodes.text, large, false),
        ...Array.from({ length: 16_384 }, () => frame(opcodes.continuation, Buffer.alloc(0), false)),
      ],
      1008,
    ],
    [
      "a text that is no UTF-8",
      [frame(opcodes.text, Buffer.concat([large, Buffer.from([0xff]), large]))],
      1007,
    ],
    [
      "a text that ends within a character",
      [frame(opcodes.text, Buffer.concat([large, Buffer.from([0xc3])]))],
      1007,
    ],
  ])("%s", (_, frames, code) => {
    const { messages, passed, refused } = read(
      Buffer.concat([...frames, frame(opcodes.ping, Buffer.alloc(0))]),
      [65_536],
    )
    expect(refused).toEqual([code])
    expect(messages).toEqual([])
    expect(passed.length).toBe(0)
  })

  it("not texts whose characters are cut by frames and reads", () => {
    const text = Buffer.from("é日😀".repeat(10_000))
    const bytes = Buffer.concat([
      frame(opcodes.text, text.subarray(0, 70_001), false),
      frame(opcodes.continuation, text.subarray(70_001)),
    ])
    const { messages } = read(bytes, [65_535, 7])
    expect(messages.map(([message]) => message.equals(text))).toEqual([true])
  })

  it("not frames that are for ws to judge: unmasked, reserved bits, a continuation of nothing", () => {
    const odd = [
      frame(opcodes.text, large, true, false),
      frame(opcodes.text | 0x40, large),
      frame(opcodes.continuation, large),
    ]
    for (const bytes of odd) {
      const { messages, passed } = read(bytes, [65_536])
      expect(messages).toEqual([])
      expect(passed.equals(bytes)).toBe(true)
    }
  })
})

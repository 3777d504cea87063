// Changes a valid input: bits flipped, pieces repeated, removed or cut off, tokens of the format inserted, numbers replaced by
// values at the limits of their type, and halves of two inputs joined. Pure.
import type { Random } from "#harness/random/Random.ts"

type Tokens = readonly [string, ...ReadonlyArray<string>]

/** What delimits HTTP heads and chunks. */
export const httpTokens: Tokens = [
  "\r\n",
  "\r\n\r\n",
  "\n",
  "\r",
  "\0",
  " ",
  "\t",
  ":",
  "/",
  "?",
  "#",
  "%00",
  "%2e%2e/",
  "0\r\n\r\n",
  "FFFFFFFFFFFFFFFF\r\n",
  "-1\r\n",
  "5;a=b\r\n",
  "Content-Length: 5\r\n",
  "Transfer-Encoding: chunked\r\n",
  "transfer-encoding: identity\r\n",
  "Expect: 100-continue\r\n",
  "Connection: close\r\n",
  "Connection: upgrade\r\nUpgrade: websocket\r\n",
  "Host: a, b\r\n",
  "Idempotency-Key: a\r\n",
  "X-Forwarded-For: ::1\r\n",
  "Content-Encoding: gzip\r\n",
  "Range: bytes=0-1\r\n",
  "GET / HTTP/1.1\r\nhost: x\r\n\r\n",
  "\xff\xfe",
]

/** What delimits JSON, and values that parsers get wrong. */
export const jsonTokens: Tokens = [
  "{",
  "}",
  "[",
  "]",
  "[[[[[[[[[[[[[[[[",
  ",",
  ":",
  '"',
  "\\",
  "\\u0000",
  "\\ud800",
  "null",
  "true",
  "NaN",
  "1e999",
  "-0",
  '"__proto__":{"a":1},',
  '"model":"fake",',
  '"stream":true,',
  '"stop":["",""],',
  '"n":0,',
  "\u{1f600}",
  "\u202e",
  "\0",
]

/** What delimits multipart bodies. */
export const multipartTokens: Tokens = [
  "--fuzz",
  "--fuzz--",
  "--fuzz\r\n",
  "\r\n--fuzz\r\n",
  "\r\n--fuzz--\r\n",
  "\r\n\r\n",
  "\r\n",
  "--",
  '; filename="a"',
  '; name="file"',
  "; filename*=UTF-8''%00",
  '"',
  "\\",
  "content-disposition: form-data",
  "content-type: application/json\r\n",
  "content-transfer-encoding: base64\r\n",
]

/** Names of boxes, chunks and pages of audio containers. */
export const audioTokens: Tokens = [
  "OggS",
  "OpusHead",
  "OpusTags",
  "\x01vorbis",
  "RIFF",
  "WAVEfmt ",
  "data",
  "LIST",
  "ftyp",
  "moov",
  "trak",
  "stsz",
  "stco",
  "stts",
  "ctts",
  "moof",
  "trun",
  "mdat",
  "fLaC",
  "ID3",
  "\0\0\0\x01",
  "\xff\xff\xff\xff",
]

/** Limits of what decimal numbers are read into. */
const numbers: Tokens = [
  "0",
  "-1",
  "1",
  "00",
  "0x10",
  "1.5",
  "127",
  "128",
  "255",
  "256",
  "32767",
  "65535",
  "65536",
  "2147483647",
  "2147483648",
  "4294967295",
  "4294967296",
  "9007199254740991",
  "9007199254740993",
  "18446744073709551615",
  "1e309",
  "99999999999999999999999999999999",
]

const binaryLimits: readonly [number, ...ReadonlyArray<number>] = [
  0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
]

/** Positions in the first `nearHead` bytes are chosen as often as all others: the structure of a file is mostly there. */
const nearHead = 200
/** No mutation repeats or removes more bytes than this. */
const longestPiece = 2_048
/** An input that mutations let grow beyond this is cut: larger ones test bandwidth. */
const longestInput = 96 * 1024

const place = (bytes: Buffer, random: Random): number =>
  random.below(random.once(2) ? Math.min(nearHead, bytes.length + 1) : bytes.length + 1)

const insert = (bytes: Buffer, at: number, more: Buffer): Buffer =>
  Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at)])

type Mutation = (bytes: Buffer, random: Random, tokens: Tokens, other: Buffer) => Buffer

const flip: Mutation = (bytes, random) => {
  const out = Buffer.from(bytes)
  for (let count = 1 + random.below(4); count > 0 && out.length > 0; count--) {
    const at = Math.min(out.length - 1, place(out, random))
    out[at] = (out[at] ?? 0) ^ (1 << random.below(8))
  }
  return out
}

const setByte: Mutation = (bytes, random) => {
  const out = Buffer.from(bytes)
  if (out.length > 0) out[Math.min(out.length - 1, place(out, random))] = random.below(256)
  return out
}

const truncate: Mutation = (bytes, random) => bytes.subarray(0, random.below(bytes.length + 1))

const remove: Mutation = (bytes, random) => {
  const at = place(bytes, random)
  const length = 1 + random.below(random.once(4) ? longestPiece : 16)
  return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)])
}

const repeat: Mutation = (bytes, random) => {
  const at = place(bytes, random)
  const piece = bytes.subarray(at, at + 1 + random.below(random.once(4) ? longestPiece : 32))
  const times = random.once(8) ? 64 : 1 + random.below(3)
  return insert(bytes, at, Buffer.concat(Array.from({ length: times }, () => piece)))
}

const token: Mutation = (bytes, random, tokens) =>
  insert(bytes, place(bytes, random), Buffer.from(random.pick(tokens), "latin1"))

/** Replaces one of the decimal numbers, or inserts one where there is none. */
const decimal: Mutation = (bytes, random) => {
  const text = bytes.toString("latin1")
  const found = [...text.slice(0, 4_096).matchAll(/\d+/g)]
  const chosen = found[random.below(found.length)]
  const value = random.pick(numbers)
  if (chosen === undefined) return insert(bytes, place(bytes, random), Buffer.from(value))
  return Buffer.from(
    text.slice(0, chosen.index) + value + text.slice(chosen.index + chosen[0].length),
    "latin1",
  )
}

/** Overwrites 1, 2 or 4 bytes with a limit of their type, in either byte order. */
const binary: Mutation = (bytes, random) => {
  const out = Buffer.from(bytes)
  const size = random.pick([1, 2, 4])
  if (out.length < size) return out
  const at = Math.min(out.length - size, place(out, random))
  const value = random.pick(binaryLimits) % 2 ** (8 * size)
  if (random.once(2)) out.writeUIntBE(value, at, size)
  else out.writeUIntLE(value, at, size)
  return out
}

const splice: Mutation = (bytes, random, _tokens, other) =>
  Buffer.concat([
    bytes.subarray(0, random.below(bytes.length + 1)),
    other.subarray(random.below(other.length + 1)),
  ])

const all: readonly [Mutation, ...ReadonlyArray<Mutation>] = [
  flip,
  flip,
  setByte,
  truncate,
  remove,
  remove,
  repeat,
  token,
  token,
  token,
  decimal,
  decimal,
  binary,
  splice,
]

/** One to four mutations; one input in sixteen stays as it is. `other` is a second valid input of the same kind. */
export const mutated = (valid: Buffer, other: Buffer, random: Random, tokens: Tokens): Buffer => {
  let bytes = valid
  const count = random.once(16) ? 0 : 1 + random.below(random.once(2) ? 1 : 4)
  for (let done = 0; done < count; done++) bytes = random.pick(all)(bytes, random, tokens, other)
  return bytes.subarray(0, longestInput)
}

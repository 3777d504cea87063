// `data:` URLs with base64, as pictures are sent in JSON. Pure.
import type { PictureFlaw } from "./PictureHead.ts"

/** Longest text before the data: a media type and its parameters. A guess, generous. */
const maxHeadChars = 256

const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/

export const isDataUrl = (text: string): boolean => /^data:/i.test(text.slice(0, 5))

/** The bytes of a `data:` URL. What it says about their type is not read, because programs often say something wrong. */
export const bytesOfDataUrl = (url: string): Uint8Array | PictureFlaw => {
  const comma = url.slice(0, maxHeadChars).indexOf(",")
  const head = url.slice(0, Math.max(0, comma))
  if (!/;\s*base64\s*$/i.test(head))
    return { flaw: "must be a data: URL with base64, like data:image/png;base64,…" }
  const data = url.slice(comma + 1)
  const compact = /\s/.test(data) ? data.replace(/\s+/g, "") : data
  if (!base64.test(compact)) return { flaw: "has data that are not base64" }
  // Memory of its own, which can be handed to another thread.
  return new Uint8Array(Buffer.from(compact, "base64"))
}

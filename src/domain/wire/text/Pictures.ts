// Pictures in the messages of chats and responses (protocol 7.15). Schemas.
import { Schema, SchemaGetter } from "effect"
import { bytesOfDataUrl, isDataUrl } from "../../pictures/DataUrl.ts"
import type { PictureFlaw } from "../../pictures/PictureHead.ts"
import { isObject } from "./Fields.ts"

/** Most pictures of a request (protocol 17.3). */
export const maxPictures = 16

const details = ["low", "high", "auto"] as const
export type PictureDetail = (typeof details)[number]

/** Undefined for a value that is none. */
export const detailOf = (value: unknown): PictureDetail | undefined =>
  value === undefined || value === null ? "auto" : details.find((detail) => detail === value)

/** Where a picture is: an address, or the bytes of a file. */
export type PictureSource = { readonly url: string } | { readonly bytes: Uint8Array }

/** A picture of a request, not decoded yet. */
export interface RequestedPicture {
  /** Where it is in the request, for errors: `messages[0].content[1]`. */
  readonly field: string
  readonly source: PictureSource
  readonly detail: PictureDetail
}

type UrlValue = string | Uint8Array | PictureFlaw

const asText = {
  decode: SchemaGetter.transform((url: string): UrlValue => url),
  encode: SchemaGetter.transform((value: UrlValue) => (typeof value === "string" ? value : "")),
}

/**
 * An `https:` or a `data:` URL. Where a large body was parsed on another thread, the bytes of a `data:` URL are here
 * instead, or what is wrong with it.
 */
export const PictureUrl = Schema.declare(
  (value): value is UrlValue =>
    typeof value === "string" ||
    value instanceof Uint8Array ||
    (isObject(value) && typeof value.flaw === "string"),
  {
    message: "must be a text",
    // For the API document.
    toCodecJson: () => Schema.link<UrlValue>()(Schema.String, asText),
  },
)

/** The source that a checked `PictureUrl` means. */
export const sourceOf = (value: UrlValue): PictureSource | PictureFlaw => {
  if (value instanceof Uint8Array) return { bytes: value }
  if (typeof value !== "string") return value
  if (!isDataUrl(value)) return { url: value }
  const bytes = bytesOfDataUrl(value)
  return "flaw" in bytes ? bytes : { bytes }
}

export const ImagePart = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({ url: PictureUrl, detail: Schema.optionalKey(Schema.Unknown) }),
})
export type ImagePart = typeof ImagePart.Type

/** Replaces the `data:` URLs in the messages of a parsed body by their bytes. The body is changed. Returns the URLs' characters. */
export const decodeInlinePictures = (body: unknown): number => {
  let taken = 0
  const decoded = (value: unknown): unknown => {
    if (typeof value !== "string" || !isDataUrl(value)) return value
    taken += value.length
    return bytesOfDataUrl(value)
  }
  if (!isObject(body)) return taken
  for (const list of [body.messages, body.input]) {
    for (const message of Array.isArray(list) ? list : []) {
      const parts: unknown = isObject(message) ? message.content : undefined
      for (const part of Array.isArray(parts) ? parts : []) {
        // Chat has an object with the URL, responses have the URL.
        if (!isObject(part)) continue
        const { image_url } = part
        if (isObject(image_url)) Object.assign(image_url, { url: decoded(image_url.url) })
        else if (typeof image_url === "string") Object.assign(part, { image_url: decoded(image_url) })
      }
    }
  }
  return taken
}

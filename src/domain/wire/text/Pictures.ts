// Pictures in the messages of chats and responses (protocol 7.15). Schemas.
import { Schema, SchemaGetter } from "effect"
import type { KeepsBytes } from "../../json/JsonReader.ts"
import { bytesOfDataUrl, DataUrlReader, isDataUrl } from "../../pictures/DataUrl.ts"
import type { PictureFlaw } from "../../pictures/PictureHead.ts"
import { isObject } from "./Fields.ts"

/** Most pictures of a request (protocol 17.3). */
export const maxPictures = 16

const details = ["low", "high", "auto"] as const
type PictureDetail = (typeof details)[number]

/** Undefined for a value that is none. */
export const detailOf = (value: unknown): PictureDetail | undefined =>
  value === undefined || value === null ? "auto" : details.find((detail) => detail === value)

/** Where a picture is: an address, or the bytes of a file. */
type PictureSource = { readonly url: string } | { readonly bytes: Uint8Array }

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
 * An `https:` or a `data:` URL. In the place of a long `data:` URL are its bytes, or what is wrong with it.
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

/**
 * Whether a long text in a body is the `data:` URL of a picture in a message: it stays bytes, of which `decodeInlinePictures` makes
 * those of the picture. Chat has an object with the URL, responses have the URL.
 */
export const keepsPictures: KeepsBytes = (path, beginning) => {
  const [list, , content, , image, url] = path
  const isThere =
    (list === "messages" || list === "input") &&
    content === "content" &&
    image === "image_url" &&
    (path.length === 5 || (path.length === 6 && url === "url"))
  return isThere && isDataUrl(beginning)
}

/** A URL of a picture that stayed bytes, and where it stands. */
interface InlinePicture {
  readonly url: Uint8Array
  readonly holder: object
  readonly key: "url" | "image_url"
}

const inlinePictures = (body: unknown): ReadonlyArray<InlinePicture> => {
  const found: Array<InlinePicture> = []
  if (!isObject(body)) return found
  for (const list of [body.messages, body.input]) {
    for (const message of Array.isArray(list) ? list : []) {
      const parts: unknown = isObject(message) ? message.content : undefined
      for (const part of Array.isArray(parts) ? parts : []) {
        if (!isObject(part)) continue
        const { image_url } = part
        if (image_url instanceof Uint8Array) found.push({ url: image_url, holder: part, key: "image_url" })
        else if (isObject(image_url) && image_url.url instanceof Uint8Array)
          found.push({ url: image_url.url, holder: image_url, key: "url" })
      }
    }
  }
  return found
}

/**
 * Replaces the URLs that stayed bytes by the pictures' bytes, or by what is wrong with them. The body is changed. Each call reads on
 * until `isOver`; true when all is done.
 */
export const decodeInlinePictures = (body: unknown): ((isOver: () => boolean) => true | undefined) => {
  const pictures = inlinePictures(body)
  let reader: DataUrlReader | undefined
  let at = 0
  return (isOver) => {
    for (let picture = pictures[at]; picture !== undefined; picture = pictures[at]) {
      reader ??= new DataUrlReader(picture.url)
      const read = reader.read(isOver)
      if (read === undefined) return undefined
      Object.assign(picture.holder, { [picture.key]: read })
      reader = undefined
      at++
    }
    return true
  }
}

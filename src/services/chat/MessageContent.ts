// The content of a chat's messages as an engine takes it: text, and pictures where the model and the role allow them. Pure.
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { ChatMessage, MessagePart } from "#domain/wire/text/Messages.ts"
import {
  detailOf,
  type ImagePart,
  maxPictures,
  type RequestedPicture,
  sourceOf,
} from "#domain/wire/text/Pictures.ts"
import type { Content, ContentPart } from "#engines/protocol/Text.ts"

/** What a model takes. */
export interface ContentTerms {
  /** The caller's word for the model, for errors. */
  readonly model: string
  readonly pictures: boolean
}

const refusal = (field: string, problem: string): InvalidRequest => new InvalidRequest({ field, problem })

const isImage = (part: MessagePart): part is ImagePart => part.type === "image_url" && "image_url" in part

/** Reads the contents of a request's messages in their order. */
export class Contents {
  readonly pictures: Array<RequestedPicture> = []
  readonly #terms: ContentTerms

  constructor(terms: ContentTerms) {
    this.#terms = terms
  }

  /** The content of a user's message. */
  read(content: NonNullable<ChatMessage["content"]>, path: string): Content | InvalidRequest {
    if (typeof content === "string") return content
    const parts: Array<ContentPart> = []
    for (const [index, part] of content.entries()) {
      const read = this.#part(part, `${path}[${index}]`)
      if (read instanceof InvalidRequest) return read
      parts.push(read)
    }
    return parts.some(({ kind }) => kind === "picture") ? parts : parts.map(textOf).join("")
  }

  /** The content of a message that may only be text. */
  readText(
    content: NonNullable<ChatMessage["content"]>,
    path: string,
    role: ChatMessage["role"],
  ): string | InvalidRequest {
    if (typeof content === "string") return content
    let joined = ""
    for (const [index, part] of content.entries()) {
      if (!("text" in part)) return this.#notText(part, `${path}[${index}]`, role)
      joined += part.text
    }
    return joined
  }

  #part(part: MessagePart, path: string): ContentPart | InvalidRequest {
    if ("text" in part) return { kind: "text", text: part.text }
    if (part.type !== "image_url" || !this.#terms.pictures) return this.#notText(part, path, "user")
    if (!isImage(part)) return refusal(`${path}.image_url`, "must be an object with a url")
    const detail = detailOf(part.image_url.detail)
    if (detail === undefined) return refusal(`${path}.image_url.detail`, "must be low, high or auto")
    if (this.pictures.length === maxPictures) {
      return refusal(path, `a request may have at most ${maxPictures} pictures`)
    }
    const source = sourceOf(part.image_url.url)
    if ("flaw" in source) return refusal(path, source.flaw)
    this.pictures.push({ field: path, source, detail })
    return { kind: "picture", picture: this.pictures.length - 1 }
  }

  #notText({ type }: MessagePart, path: string, role: ChatMessage["role"]): InvalidRequest {
    const { model, pictures } = this.#terms
    if (!pictures) return refusal(path, `only text is supported by ${model}`)
    if (type === "image_url")
      return refusal(path, `a picture must be in a user message, not in one of the role ${role}`)
    return refusal(path, `only text and pictures are supported by ${model}`)
  }
}

const textOf = (part: ContentPart): string => (part.kind === "text" ? part.text : "")

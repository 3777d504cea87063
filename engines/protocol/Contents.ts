// The content of messages that may hold pictures. Pure.
import type { Content, ContentPart, GenerateRequest, TextPrompt } from "./Text.ts"

export const partsOf = (content: Content): ReadonlyArray<ContentPart> =>
  typeof content === "string" ? [{ kind: "text", text: content }] : content

/** The text alone, without the pictures. */
export const textOf = (content: Content): string =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.kind === "text" ? part.text : "")).join("")

/** Two contents as one, with a text between them. Text stays text where no picture is involved. */
export const joined = (first: Content, between: string, second: Content): Content =>
  typeof first === "string" && typeof second === "string"
    ? `${first}${between}${second}`
    : [...partsOf(first), { kind: "text", text: between }, ...partsOf(second)]

/** The prompts of a text completion; none of a chat. */
export const textPromptsOf = (prompt: GenerateRequest["prompt"]): ReadonlyArray<TextPrompt> =>
  "text" in prompt ? [prompt.text] : "texts" in prompt ? prompt.texts : []

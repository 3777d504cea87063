// Puts the deltas of a reply together as a client does.
import type { TextDelta } from "#engines/protocol/Text.ts"

interface ReadCall {
  readonly name: string
  arguments: string
}

/** @throws if arguments come before their call, or calls are not numbered in order. */
export const callsOf = (deltas: ReadonlyArray<TextDelta>): ReadonlyArray<ReadCall> => {
  const calls: Array<ReadCall> = []
  for (const { detail, text } of deltas) {
    const part = detail?.part
    if (part?.kind === "call") {
      if (part.call !== calls.length) throw new Error(`call ${part.call} after ${calls.length} calls`)
      calls.push({ name: part.name, arguments: "" })
    } else if (part?.kind === "arguments") {
      const call = calls[part.call]
      if (call === undefined) throw new Error(`arguments of a call ${part.call} that has not begun`)
      call.arguments += text
    }
  }
  return calls
}

/** The text of the answer itself. */
export const contentOf = (deltas: ReadonlyArray<TextDelta>): string =>
  deltas
    .filter(({ detail }) => detail?.part === undefined)
    .map(({ text }) => text)
    .join("")

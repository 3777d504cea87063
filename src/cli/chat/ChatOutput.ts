// What a chat prints: the answer on standard output; thinking, notes and receipts on standard error, dimmed on a terminal.

import { hasColours } from "#config/OtherVariables.ts"
import { formatUsd } from "#domain/models/Money.ts"
import { visible } from "../shared/Output.ts"
import type { Answer, AnswerListener } from "./Answer.ts"

interface OutputStream {
  readonly isTTY?: boolean | undefined
  readonly write: (text: string) => unknown
}

const dim = "\u001b[2m"
const plain = "\u001b[22m"

/** `first token 0.21 s, 35 tokens in 1.4 s, 29.4 tokens/s, 0.000061 USD, receipt rcpt_…`; what is not known is left out. */
export const receiptLine = (answer: Answer, microDollars?: number): string => {
  const { completionTokens, finishReason, firstTokenMs, receiptId, totalMs } = answer
  const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`
  // The first token comes with the prompt, so the rate counts the tokens after it.
  const decodeMs = totalMs - (firstTokenMs ?? totalMs)
  const rate =
    completionTokens === undefined || completionTokens < 2 || decodeMs <= 0
      ? []
      : [`${(((completionTokens - 1) * 1000) / decodeMs).toFixed(1)} tokens/s`]
  return [
    ...(firstTokenMs === undefined ? ["no text"] : [`first token ${seconds(firstTokenMs)}`]),
    completionTokens === undefined ? seconds(totalMs) : `${completionTokens} tokens in ${seconds(totalMs)}`,
    ...rate,
    ...(finishReason === "length" ? ["cut at --max-tokens or the context"] : []),
    ...(microDollars === undefined ? [] : [`${formatUsd(microDollars)} USD`]),
    ...(receiptId === undefined ? [] : [`receipt ${visible(receiptId)}`]),
  ].join(", ")
}

export class ChatOutput implements AnswerListener {
  readonly #out: OutputStream
  readonly #err: OutputStream
  readonly #colours: boolean
  /** Whether the last text on each stream ended in the middle of a line. */
  #openText = false
  #openReasoning = false

  constructor(out: OutputStream, err: OutputStream) {
    this.#out = out
    this.#err = err
    this.#colours = hasColours() && err.isTTY === true
  }

  #dimmed(text: string): string {
    return this.#colours ? `${dim}${text}${plain}` : text
  }

  readonly onText = (text: string): void => {
    this.#endReasoning()
    const shown = visible(text)
    this.#openText = !shown.endsWith("\n")
    this.#out.write(shown)
  }

  readonly onReasoning = (text: string): void => {
    const shown = visible(text)
    this.#openReasoning = !shown.endsWith("\n")
    this.#err.write(this.#dimmed(shown))
  }

  #endReasoning(): void {
    if (this.#openReasoning) this.#err.write("\n")
    this.#openReasoning = false
  }

  /** Ends the answer's last line. */
  endAnswer(): void {
    this.#endReasoning()
    if (this.#openText) this.#out.write("\n")
    this.#openText = false
  }

  /** A line beside the answers. */
  note(text: string): void {
    this.#err.write(`${this.#dimmed(visible(text))}\n`)
  }

  /** A line that says what went wrong. */
  problem(text: string): void {
    this.#err.write(`${visible(text)}\n`)
  }
}

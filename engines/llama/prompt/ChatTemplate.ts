// Renders a model's own chat template and keeps the template's text and the users' text apart.
//
// Where a model has a template, the library's chat wrappers are not used: they render a finished conversation and cut
// it, so the template never writes the beginning of a reply, where thinking is switched off.
import type { ChatTurn } from "../../protocol/Engine.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"

/** The template does not allow the conversation. The message is the template's own. */
export class TemplateRefused extends Error {}

/** llama.cpp's Jinja quotes the template around an error; this finds the message of `raise_exception`. */
const raised = /Jinja Exception: (.*)/

/** Renders the template with these variables, or throws. */
export type Render = (variables: Record<string, unknown>) => string

/** A part of the prompt, written by the template or by the author of a message. */
export interface PromptPart {
  readonly text: string
  readonly byTemplate: boolean
}

/** The markers of thinking blocks that open models use (the list of node-llama-cpp 3.21.1). */
const knownThoughts: ReadonlyArray<readonly [open: string, close: string]> = [
  ["<think>", "</think>"],
  ["<thought>", "</thought>"],
  ["[THINK]", "[/THINK]"],
  ["<|START_THINKING|>", "<|END_THINKING|>"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
]

/** The variables that templates read to decide whether the model thinks. */
const withoutThinking = { enable_thinking: false, thinking: false }

/**
 * The same conversation for templates without a system role, or that require alternating roles: system messages are put
 * before the next message, and neighbouring messages of one role are joined.
 */
const strictTurns = (turns: ReadonlyArray<ChatTurn>): ReadonlyArray<ChatTurn> => {
  const strict: Array<ChatTurn> = []
  for (const { role, content } of turns) {
    const user = role === "system" ? "user" : role
    const last = strict.at(-1)
    if (last?.role === user) strict.splice(-1, 1, { role: user, content: `${last.content}\n\n${content}` })
    else strict.push({ role: user, content })
  }
  return strict
}

export class ChatTemplate {
  readonly #render: Render
  readonly #variables: Record<string, unknown>
  /** Placeholder for a message's text while the template is rendered; it does not occur in the template. */
  readonly #mark: string
  readonly #thought: readonly [open: string, close: string] | undefined

  constructor(source: string, render: Render, special: { readonly bos: string; readonly eos: string }) {
    this.#render = render
    this.#variables = {
      ...withoutThinking,
      bos_token: special.bos,
      eos_token: special.eos,
      add_generation_prompt: true,
    }
    let mark = "@@"
    while (source.includes(mark)) mark += "@"
    this.#mark = mark
    this.#thought = knownThoughts.find(([open, close]) => source.includes(open) || source.includes(close))
  }

  /** @throws TemplateRefused if the template refuses the conversation in its original and its strict form. */
  parts(turns: ReadonlyArray<ChatTurn>): ReadonlyArray<PromptPart> {
    try {
      return this.#parts(turns)
    } catch (failure) {
      try {
        return this.#parts(strictTurns(turns))
      } catch {
        const said = raised.exec(failure instanceof Error ? failure.message : "")?.[1]
        throw said === undefined ? failure : new TemplateRefused(said)
      }
    }
  }

  /** The thinking markers to remove from a reply to this prompt. */
  thought(parts: ReadonlyArray<PromptPart>): ThoughtMarkers | undefined {
    if (this.#thought === undefined) return undefined
    const [open, close] = this.#thought
    const last = parts.at(-1)
    const startsInside = last?.byTemplate === true && last.text.trimEnd().endsWith(open)
    return { open, close, startsInside }
  }

  /** All markers that a reply could begin with; the vocabulary has to give their text. */
  get thoughtMarkers(): ReadonlyArray<string> {
    return this.#thought ?? []
  }

  #parts(turns: ReadonlyArray<ChatTurn>): ReadonlyArray<PromptPart> {
    const messages = turns.map(({ role }, at) => ({ role, content: `${this.#mark}${at}${this.#mark}` }))
    const rendered = this.#render({ ...this.#variables, messages })
    const parts: Array<PromptPart> = []
    // Pieces at even positions are the template's text, those at odd positions are message indexes.
    for (const [at, piece] of rendered.split(new RegExp(`${this.#mark}(\\d+)${this.#mark}`)).entries()) {
      const byTemplate = at % 2 === 0
      const text = byTemplate ? piece : (turns[Number(piece)]?.content ?? "")
      if (text !== "") parts.push({ text, byTemplate })
    }
    return parts
  }
}

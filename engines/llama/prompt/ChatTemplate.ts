// A model's own chat template, rendered so that the template's text and the users' text stay apart. Called by
// ChatPrompt. Knows Jinja only as a function, and no tokens.
//
// The library's chat wrappers are not used where a model has a template: they render a finished conversation and cut
// it, so a template's way to begin a reply, which is where thinking is switched off, never runs.
import type { ChatTurn } from "../../protocol/Engine.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"

/** The template does not allow the conversation; the message is the template's own. */
export class TemplateRefused extends Error {}

/** llama.cpp's Jinja quotes the template around an error; this marks what `raise_exception` said. */
const raised = /Jinja Exception: (.*)/

/** Renders the template with these variables, or throws. */
export type Render = (variables: Record<string, unknown>) => string

/** A stretch of the prompt: written by the template, or by whoever wrote a turn. */
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

/** The names under which templates ask whether to think. */
const withoutThinking = { enable_thinking: false, thinking: false }

/**
 * The same conversation for templates that know no system role or insist on taking turns: system messages go before
 * the next message, neighbours of one role become one.
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
  /** Stands for a turn's text while the template runs; not part of the template. */
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

  /** Throws `TemplateRefused` for a conversation that the template does not allow, however it is put. */
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

  /** What a reply to this prompt has to lose. */
  thought(parts: ReadonlyArray<PromptPart>): ThoughtMarkers | undefined {
    if (this.#thought === undefined) return undefined
    const [open, close] = this.#thought
    const last = parts.at(-1)
    const startsInside = last?.byTemplate === true && last.text.trimEnd().endsWith(open)
    return { open, close, startsInside }
  }

  /** All markers that a reply could begin with, for the vocabulary to show. */
  get thoughtMarkers(): ReadonlyArray<string> {
    return this.#thought ?? []
  }

  #parts(turns: ReadonlyArray<ChatTurn>): ReadonlyArray<PromptPart> {
    const messages = turns.map(({ role }, at) => ({ role, content: `${this.#mark}${at}${this.#mark}` }))
    const rendered = this.#render({ ...this.#variables, messages })
    const parts: Array<PromptPart> = []
    // Even pieces are the template's, odd ones the numbers of turns.
    for (const [at, piece] of rendered.split(new RegExp(`${this.#mark}(\\d+)${this.#mark}`)).entries()) {
      const byTemplate = at % 2 === 0
      const text = byTemplate ? piece : (turns[Number(piece)]?.content ?? "")
      if (text !== "") parts.push({ text, byTemplate })
    }
    return parts
  }
}

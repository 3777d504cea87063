// Renders a model's own chat template and keeps the template's text and the users' text apart.
//
// Where a model has a template, the library's chat wrappers are not used: they render a finished conversation and cut
// it, so the template never writes the beginning of a reply, where thinking is switched off.
import { joined } from "../../protocol/Contents.ts"
import type { ChatTurn, Tool } from "../../protocol/Text.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"
import { Places, type PromptPart } from "../tools/places/Places.ts"
import { Spellings } from "../tools/places/Spellings.ts"
import { familyOf, generalFamily } from "../tools/RecogniseFamily.ts"
import type { ToolFamily, ToolVariables } from "../tools/ToolFamily.ts"
import type { SpecialTexts } from "./SpecialTexts.ts"

/** The template does not allow the conversation. The message is the template's own. */
export class TemplateRefused extends Error {}

/** llama.cpp's Jinja quotes the template around an error; this finds the message of `raise_exception`. */
const raised = /Jinja Exception: (.*)/

/** Renders the template with these variables, or throws. */
export type Render = (variables: Record<string, unknown>) => string

/**
 * The markers of thinking blocks that open models use (the list of node-llama-cpp 3.21.1, and Gemma 4). `tokens`: the special
 * tokens in them, if those are not the markers themselves.
 */
const knownThoughts: ReadonlyArray<readonly [open: string, close: string, tokens?: ReadonlyArray<string>]> = [
  ["<think>", "</think>"],
  ["<thought>", "</thought>"],
  ["[THINK]", "[/THINK]"],
  ["<|START_THINKING|>", "<|END_THINKING|>"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|channel>thought", "<channel|>", ["<|channel>", "<channel|>"]],
]

/** The variables that templates read to decide whether the model thinks. */
const thinkingVariables = (on: boolean) => ({ enable_thinking: on, thinking: on })

const hasCalls = (turn: ChatTurn): boolean => turn.role === "assistant" && (turn.calls ?? []).length > 0

/**
 * The same conversation for templates without a system role, or that require alternating roles: system messages are put
 * before the next message, and neighbouring messages of one role are joined. Calls and their results stay as they are.
 */
const strictTurns = (turns: ReadonlyArray<ChatTurn>): ReadonlyArray<ChatTurn> => {
  const strict: Array<ChatTurn> = []
  for (const turn of turns) {
    if (turn.role === "tool" || hasCalls(turn)) {
      strict.push(turn)
      continue
    }
    const last = strict.at(-1)
    if (turn.role === "assistant") {
      const { content } = turn
      if (last?.role === "assistant" && !hasCalls(last))
        strict.splice(-1, 1, { role: "assistant", content: `${last.content}\n\n${content}` })
      else strict.push({ role: "assistant", content })
    } else if (last?.role === "user") {
      strict.splice(-1, 1, { role: "user", content: joined(last.content, "\n\n", turn.content) })
    } else strict.push({ role: "user", content: turn.content })
  }
  return strict
}

/** What the model defines for its template. */
interface TemplateFacts {
  readonly bos: string
  readonly eos: string
  readonly special?: SpecialTexts
}

const noSpellings = new Spellings([])

type Message = Readonly<Record<string, unknown>>

/** The same message, its text as a list of one part. */
const inParts = (message: Message): Message =>
  typeof message.content === "string"
    ? { ...message, content: [{ type: "text", text: message.content }] }
    : message

/** Tries a template with a text and with a list of parts, and sees which of them it prints. */
const readsParts = (render: (messages: ReadonlyArray<Message>) => string): boolean => {
  const content = "Do you print this?"
  const message = { role: "user", content }
  const prints = (messages: ReadonlyArray<Message>): boolean => {
    try {
      return render(messages).includes(content)
    } catch {
      return false
    }
  }
  return !prints([message]) && prints([inParts(message)])
}

export class ChatTemplate {
  readonly #render: Render
  readonly #variables: Record<string, unknown>
  readonly #thought: (typeof knownThoughts)[number] | undefined
  /** How the model calls tools. */
  readonly tools: ToolFamily
  readonly #special: Spellings
  readonly #everywhere: Spellings
  /** Whether the template reads a list of parts instead of text, as some templates of models that take pictures do. */
  readonly #readsParts: boolean

  constructor(source: string, render: Render, { bos, eos, special }: TemplateFacts) {
    this.#render = render
    this.#variables = {
      ...thinkingVariables(false),
      bos_token: bos,
      eos_token: eos,
      add_generation_prompt: true,
    }
    this.#thought = knownThoughts.find(([open, close]) => source.includes(open) || source.includes(close))
    this.#readsParts = readsParts((messages) => render({ ...this.#variables, messages }))
    const draw = (variables: ToolVariables) => render({ ...this.#variables, ...variables })
    this.tools = familyOf(source, draw, () => new Places(noSpellings, noSpellings))
    // Without a family of its own the call syntax is ordinary text of messages.
    const free: ReadonlyArray<string> = this.tools.name === generalFamily.name ? generalFamily.markers : []
    const everywhere = (special?.everywhere ?? []).filter(
      (spelling) => source.includes(spelling) && !free.includes(spelling),
    )
    this.#everywhere = new Spellings(everywhere)
    this.#special = new Spellings([...(special?.control ?? []), ...everywhere])
  }

  /**
   * `thinking`: the model may think before it answers.
   * @throws TemplateRefused if the template refuses the conversation in its original and its strict form.
   */
  parts(
    turns: ReadonlyArray<ChatTurn>,
    tools: ReadonlyArray<Tool> = [],
    thinking = false,
  ): ReadonlyArray<PromptPart> {
    const prepared = this.tools.prepared(turns, tools)
    try {
      return this.#parts(prepared, tools, thinking)
    } catch (failure) {
      try {
        return this.#parts(strictTurns(prepared), tools, thinking)
      } catch {
        const said = raised.exec(failure instanceof Error ? failure.message : "")?.[1]
        throw said === undefined ? failure : new TemplateRefused(said)
      }
    }
  }

  /** The thinking markers of a reply to this prompt. */
  thought(parts: ReadonlyArray<PromptPart>): ThoughtMarkers | undefined {
    if (this.#thought === undefined) return undefined
    const [open, close] = this.#thought
    const last = parts.at(-1)
    const startsInside = last?.byTemplate === true && last.text.trimEnd().endsWith(open)
    return { open, close, startsInside }
  }

  /** All markers of thinking and of calls that a reply could have; the vocabulary has to give their text. */
  get markers(): ReadonlyArray<string> {
    const [open = "", close = "", tokens = [open, close]] = this.#thought ?? []
    return [...tokens.filter((token) => token !== ""), ...this.tools.markers]
  }

  /** Spellings of special tokens that end a reply, besides those that llama.cpp takes for ends. */
  get ends(): ReadonlyArray<string> {
    return this.tools.ends
  }

  #parts(
    turns: ReadonlyArray<ChatTurn>,
    tools: ReadonlyArray<Tool>,
    thinking: boolean,
  ): ReadonlyArray<PromptPart> {
    const places = new Places(this.#special, this.#everywhere)
    const variables = this.tools.variables(turns, tools, places)
    const messages = this.#readsParts ? variables.messages.map(inParts) : variables.messages
    return places.parts(
      this.#render({ ...this.#variables, ...thinkingVariables(thinking), ...variables, messages }),
    )
  }
}

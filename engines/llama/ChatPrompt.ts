// A request's prompt as tokens: the model's own chat template for turns, plain tokens for text. Called by
// LlamaGguf before a request gets a sequence. Knows nothing of sequences or sampling.
//
// Text written by users is tokenized without special tokens, so `<|im_end|>` in a message is eight ordinary tokens.
import {
  type ChatHistoryItem,
  type ChatWrapper,
  GeneralChatWrapper,
  type LlamaModel,
  LlamaText,
  resolveChatWrapper,
} from "node-llama-cpp"
import type { ChatTurn, GenerateRequest } from "../Engine.ts"
import type { ThoughtMarkers } from "./ThoughtFilter.ts"

export interface Prompt {
  readonly tokens: ReadonlyArray<number>
  /** Lengths at which a checkpoint would serve later prompts, ascending; empty where none are needed. */
  readonly marks: ReadonlyArray<number>
  readonly thought: ThoughtMarkers | undefined
}

/** The request cannot be a prompt of this model. `promptTokens` is an estimate for texts too long to tokenize. */
export type PromptProblem = { readonly promptTokens: number } | { readonly empty: true }

/** Thinking off, for each wrapper that has a switch. */
const withoutThinking = {
  qwen: { thoughts: "discourage" },
  jinjaTemplate: { reasoning: false },
  gemma4: { reasoning: false },
  seed: { thinkingBudget: 0 },
} as const

/** The library prints to the console when it falls back by itself; so it is not allowed to. */
const silently = { warningLogs: false, fallbackToOtherWrappersOnJinjaError: false } as const

const wrapperOf = (model: LlamaModel): ChatWrapper => {
  const customWrapperSettings = withoutThinking
  try {
    return resolveChatWrapper(model, { ...silently, customWrapperSettings }) ?? new GeneralChatWrapper()
  } catch {
    return (
      resolveChatWrapper(model, { ...silently, noJinja: true, customWrapperSettings }) ??
      new GeneralChatWrapper()
    )
  }
}

const historyOf = (turns: ReadonlyArray<ChatTurn>): Array<ChatHistoryItem> => [
  ...turns.map(
    ({ role, content }): ChatHistoryItem =>
      role === "assistant" ? { type: "model", response: [content] } : { type: role, text: content },
  ),
  // The reply to come.
  { type: "model", response: [] },
]

/** Tokens a text prompt's end may lose when the same text goes on: its last word may be tokenized differently. */
const looseEnd = 4

export class ChatPrompt {
  readonly #model: LlamaModel
  readonly #wrapper: ChatWrapper
  readonly #contextTokens: number
  readonly #needsCheckpoints: boolean
  /** A text longer than this has more tokens than the context, whatever it says. */
  readonly #longestText: number
  readonly #templateHasBos: boolean
  readonly thought: ThoughtMarkers | undefined

  constructor(model: LlamaModel, contextTokens: number, needsCheckpoints: boolean) {
    this.#model = model
    this.#wrapper = wrapperOf(model)
    this.#contextTokens = contextTokens
    this.#needsCheckpoints = needsCheckpoints
    const tokenizer = model.fileInfo.metadata.tokenizer
    const spellings: ReadonlyArray<string> = tokenizer?.ggml?.tokens ?? []
    const longestToken = spellings.reduce((longest, { length }) => Math.max(longest, length), 1)
    this.#longestText = contextTokens * longestToken
    this.#templateHasBos = tokenizer?.chat_template?.includes("bos_token") ?? false
    this.thought = this.#thoughtMarkers()
  }

  get wrapperName(): string {
    return this.#wrapper.wrapperName
  }

  read(prompt: GenerateRequest["prompt"]): Prompt | PromptProblem {
    const read = "text" in prompt ? this.#readText(prompt.text) : this.#readTurns(prompt.turns)
    if (!("tokens" in read)) return read
    if (read.tokens.length === 0) return { empty: true }
    return read.tokens.length >= this.#contextTokens ? { promptTokens: read.tokens.length } : read
  }

  #readText(text: string): Prompt | PromptProblem {
    if (text.length > this.#longestText) return this.#estimate(text)
    const { bos, shouldPrependBosToken } = this.#model.tokens
    const start: Array<number> = shouldPrependBosToken && bos !== null ? [bos] : []
    const tokens = start.concat(this.#model.tokenize(text))
    // Nothing to go on from: the beginning of a text, where the vocabulary has a token for it.
    if (tokens.length === 0 && bos !== null) tokens.push(bos)
    const mark = tokens.length - looseEnd
    return { tokens, marks: this.#needsCheckpoints && mark > 0 ? [mark] : [], thought: undefined }
  }

  #readTurns(turns: ReadonlyArray<ChatTurn>): Prompt | PromptProblem {
    const length = turns.reduce((sum, { content }) => sum + content.length, 0)
    if (length > this.#longestText) return this.#estimate(turns.map(({ content }) => content).join("\n"))
    const { contextText } = this.#wrapper.generateContextState({ chatHistory: historyOf(turns) })
    const tokens = this.#tokenize(contextText)
    const marks = this.#needsCheckpoints ? this.#marksOf(contextText, turns[0]?.role === "system") : []
    return { tokens, marks, thought: this.thought }
  }

  #tokenize(text: LlamaText): Array<number> {
    const tokens: Array<number> = text.tokenize(this.#model.tokenizer)
    const { bos, shouldPrependBosToken } = this.#model.tokens
    if (bos === null) return tokens
    if (shouldPrependBosToken) return tokens[0] === bos ? tokens : [bos, ...tokens]
    // Some of the library's wrappers begin with this token whatever the model was trained with.
    return tokens[0] === bos && !this.#templateHasBos ? tokens.slice(1) : tokens
  }

  /**
   * Where prompts that share a beginning part: after the system message, and after the last message, before the
   * markers that open the reply (a template may render a past reply's markers differently).
   */
  #marksOf(text: LlamaText, startsWithSystem: boolean): ReadonlyArray<number> {
    const { values } = text
    const first = startsWithSystem ? values.findIndex((value) => typeof value === "string") : -1
    const last = values.findLastIndex((value) => typeof value === "string")
    const marks = [first, last].filter((at) => at >= 0)
    const lengths = marks.map((at) => this.#tokenize(LlamaText(values.slice(0, at + 1))).length)
    return [...new Set(lengths)]
  }

  /** From the tokens of its first part; the text is certainly too long, so only the message needs the number. */
  #estimate(text: string): PromptProblem {
    const part = text.slice(0, 65_536)
    const promptTokens = Math.round((this.#model.tokenize(part).length / part.length) * text.length)
    return { promptTokens: Math.max(promptTokens, this.#contextTokens) }
  }

  #thoughtMarkers(): ThoughtMarkers | undefined {
    const thought = this.#wrapper.settings.segments?.thought
    if (thought === undefined) return undefined
    const close = LlamaText(thought.suffix ?? "")
      .toString()
      .trim()
    if (close === "") return undefined
    const { prefix } = thought
    if (typeof prefix === "object" && "type" in prefix) return { open: close, close, startsInside: true }
    const open = LlamaText(prefix).toString().trim()
    const startsInside = thought.openOnResponseStart ?? false
    return open === "" ? undefined : { open, close, startsInside }
  }
}

// A request's prompt as tokens: the model's own chat template for turns, plain tokens for text. Called by
// LlamaGguf before a request gets a sequence. Knows nothing of sequences or sampling.
//
// Text written by users is tokenized without special tokens, so `<|im_end|>` in a message is ordinary text.
import {
  type ChatHistoryItem,
  GeneralChatWrapper,
  type LlamaModel,
  LlamaText,
  resolveChatWrapper,
  SpecialTokensText,
  type Tokenizer,
} from "node-llama-cpp"
import type { ChatTurn, GenerateRequest } from "../../protocol/Engine.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"
import { ChatTemplate, type Render } from "./ChatTemplate.ts"
import { safeTokenizer } from "./SafeTokenizer.ts"

export interface Prompt {
  readonly tokens: ReadonlyArray<number>
  /** Lengths at which a checkpoint would serve later prompts, ascending; empty where none are needed. */
  readonly marks: ReadonlyArray<number>
  readonly thought: ThoughtMarkers | undefined
}

/** The request cannot be a prompt of this model. `promptTokens` is an estimate for texts too long to tokenize. */
export type PromptProblem = { readonly promptTokens: number } | { readonly empty: true }

/** For models without a template: the format the library thinks fits, without its messages to the console. */
const formatByGuess = (model: LlamaModel, turns: ReadonlyArray<ChatTurn>): LlamaText => {
  const wrapper = resolveChatWrapper(model, { warningLogs: false, noJinja: true }) ?? new GeneralChatWrapper()
  const spoken = turns.map(
    ({ role, content }): ChatHistoryItem =>
      role === "assistant" ? { type: "model", response: [content] } : { type: role, text: content },
  )
  return wrapper.generateContextState({ chatHistory: [...spoken, { type: "model", response: [] }] })
    .contextText
}

/** The model's own template, if it has one; `compile` throws on one that is no Jinja. */
export const templateOf = (
  model: LlamaModel,
  compile: (template: string) => Render,
): ChatTemplate | undefined => {
  const source = model.fileInfo.metadata.tokenizer?.chat_template
  if (source === undefined || source.trim() === "") return undefined
  const { bosString, eosString } = model.tokens
  return new ChatTemplate(source, compile(source), { bos: bosString ?? "", eos: eosString ?? "" })
}

/** Tokens a text prompt's end may lose when the same text goes on: its last word may be tokenized differently. */
const looseEnd = 4

export class ChatPrompt {
  readonly #model: LlamaModel
  readonly #tokenizer: Tokenizer
  readonly #template: ChatTemplate | undefined
  readonly #contextTokens: number
  readonly #needsCheckpoints: boolean
  /** A text longer than this has more tokens than the context, whatever it says. */
  readonly #longestText: number

  constructor(
    model: LlamaModel,
    template: ChatTemplate | undefined,
    limits: { readonly contextTokens: number; readonly needsCheckpoints: boolean },
  ) {
    this.#model = model
    this.#tokenizer = safeTokenizer(model)
    this.#template = template
    this.#contextTokens = limits.contextTokens
    this.#needsCheckpoints = limits.needsCheckpoints
    const spellings: ReadonlyArray<string> = model.fileInfo.metadata.tokenizer?.ggml?.tokens ?? []
    const longestToken = spellings.reduce((longest, { length }) => Math.max(longest, length), 1)
    this.#longestText = limits.contextTokens * longestToken
  }

  /** Throws `TemplateRefused` when the template does not allow the conversation. */
  read(prompt: GenerateRequest["prompt"]): Prompt | PromptProblem {
    const read = "text" in prompt ? this.#readText(prompt.text) : this.#readTurns(prompt.turns)
    if (!("tokens" in read)) return read
    if (read.tokens.length === 0) return { empty: true }
    return read.tokens.length >= this.#contextTokens ? { promptTokens: read.tokens.length } : read
  }

  #readText(text: string): Prompt | PromptProblem {
    if (text.length > this.#longestText) return this.#estimate(text)
    const tokens = this.#begun([...this.#tokenizer(text)])
    // Nothing to go on from: the beginning of a text, where the vocabulary has a token for it.
    const { bos } = this.#model.tokens
    if (tokens.length === 0 && bos !== null) tokens.push(bos)
    const mark = tokens.length - looseEnd
    return { tokens, marks: this.#needsCheckpoints && mark > 0 ? [mark] : [], thought: undefined }
  }

  #readTurns(turns: ReadonlyArray<ChatTurn>): Prompt | PromptProblem {
    const length = turns.reduce((sum, { content }) => sum + content.length, 0)
    if (length > this.#longestText) return this.#estimate(turns.map(({ content }) => content).join("\n"))
    const parts = this.#template?.parts(turns)
    const text =
      parts === undefined
        ? formatByGuess(this.#model, turns)
        : LlamaText(parts.map((part) => (part.byTemplate ? new SpecialTokensText(part.text) : part.text)))
    return {
      tokens: this.#tokenize(text),
      marks: this.#needsCheckpoints ? this.#marksOf(text, turns[0]?.role === "system") : [],
      thought: parts && this.#template?.thought(parts),
    }
  }

  #tokenize(text: LlamaText): Array<number> {
    return this.#begun(text.tokenize(this.#tokenizer))
  }

  /** With the beginning-of-text token, if the model wants one and the template did not write it. */
  #begun(tokens: Array<number>): Array<number> {
    const { bos, shouldPrependBosToken } = this.#model.tokens
    return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
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
    const promptTokens = Math.round((this.#tokenizer(part).length / part.length) * text.length)
    return { promptTokens: Math.max(promptTokens, this.#contextTokens) }
  }
}

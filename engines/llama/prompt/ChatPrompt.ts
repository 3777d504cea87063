// Turns a request's prompt into tokens: messages through the model's own chat template, text as it is.
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
import { textOf, textPromptsOf } from "../../protocol/Contents.ts"
import type { ChatTurn, GenerateRequest } from "../../protocol/Engine.ts"
import type { Picture, TextPrompt, Tool } from "../../protocol/Text.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import type { PromptPart } from "../tools/places/Places.ts"
import { generalFamily } from "../tools/RecogniseFamily.ts"
import type { ToolFamily } from "../tools/ToolFamily.ts"
import type { PictureReader } from "../vision/PictureReader.ts"
import type { PictureSpan } from "../vision/Spans.ts"
import { ChatTemplate, type Render } from "./ChatTemplate.ts"
import { type OpenMessage, openMessage } from "./OpenMessage.ts"
import { safeTokenizer } from "./SafeTokenizer.ts"
import { specialTexts } from "./SpecialTexts.ts"
import { estimateOfTooLong, type TextLimits, textLimits } from "./TextLength.ts"

export interface Prompt {
  /** Tokens; rows of pictures are negative numbers, see vision/Spans. */
  readonly tokens: ReadonlyArray<number>
  /** The rows of pictures, in order. */
  readonly spans: ReadonlyArray<PictureSpan>
  /** Lengths in tokens at which a checkpoint would serve later prompts, ascending; empty if none are needed. */
  readonly marks: ReadonlyArray<number>
  /** Tokens of the beginning that are a prompt which the catalog declares as shared; 0 if there are none. */
  readonly shared: number
  readonly thought: ThoughtMarkers | undefined
}

/**
 * Why a request is no prompt of this model. For texts too long to tokenize, `promptTokens` is an estimate. `noInfill`: the
 * model cannot continue towards a suffix. `noPictures`: why it cannot read the pictures of the request.
 */
type PromptProblem =
  | { readonly promptTokens: number }
  | { readonly empty: true }
  | { readonly noInfill: true }
  | { readonly unknownToken: number; readonly size: number }
  | { readonly noPictures: string }

/** What of a request decides about its prompt. */
type PromptRequest = Pick<
  GenerateRequest,
  "owner" | "pictures" | "prompt" | "suffix" | "thinkingTokens" | "tools"
>

/** For models without a template: the format that the library guesses. Its console messages are suppressed. */
const formatByGuess = (model: LlamaModel, turns: ReadonlyArray<ChatTurn>): LlamaText => {
  const wrapper = resolveChatWrapper(model, { warningLogs: false, noJinja: true }) ?? new GeneralChatWrapper()
  const spoken = turns.map(
    ({ role, content }): ChatHistoryItem =>
      role === "assistant"
        ? { type: "model", response: [textOf(content)] }
        : { type: role === "tool" ? "user" : role, text: textOf(content) },
  )
  return wrapper.generateContextState({ chatHistory: [...spoken, { type: "model", response: [] }] })
    .contextText
}

/** The model's own template, if it has one. `compile` throws if it is not valid Jinja. */
export const templateOf = (
  model: LlamaModel,
  compile: (template: string) => Render,
): ChatTemplate | undefined => {
  const source = model.fileInfo.metadata.tokenizer?.chat_template
  if (source === undefined || source.trim() === "") return undefined
  const { bosString, eosString } = model.tokens
  const special = specialTexts(model)
  return new ChatTemplate(source, compile(source), { bos: bosString ?? "", eos: eosString ?? "", special })
}

/** All texts of a conversation that callers wrote. */
const textsOf = (turns: ReadonlyArray<ChatTurn>, tools: ReadonlyArray<Tool>): ReadonlyArray<string> => [
  ...turns.flatMap((turn) =>
    turn.role === "assistant"
      ? [turn.content, turn.reasoning ?? "", ...(turn.calls ?? []).map((call) => call.arguments)]
      : [textOf(turn.content)],
  ),
  ...tools.map((tool) => JSON.stringify(tool)),
]

/** Tokens at the end of a text prompt that may change when the text continues: its last word may grow. */
const looseEnd = 4

/** Marks that end a sentence, of scripts in which conversations are usual. */
const sentenceMarks = [".", "?", "!", "...", "…", "。", "？", "！", "؟", "।"]

interface PromptLimits {
  readonly contextTokens: number
  readonly needsCheckpoints: boolean
  /** System messages whose tokens are shared. */
  readonly sharedPrompts?: ReadonlyArray<string>
}

export class ChatPrompt {
  readonly #model: LlamaModel
  readonly #tokenizer: Tokenizer
  readonly #template: ChatTemplate | undefined
  readonly #contextTokens: number
  readonly #needsCheckpoints: boolean
  readonly #pictures: PictureReader | undefined
  /** Without white space around them, which templates remove. */
  readonly #sharedPrompts: ReadonlySet<string>
  readonly #limits: TextLimits
  #sentenceEnds: ReadonlyArray<number> | undefined
  readonly #usualThoughts = new Map<boolean, ThoughtMarkers>()

  constructor(
    model: LlamaModel,
    template: ChatTemplate | undefined,
    limits: PromptLimits,
    pictures?: PictureReader,
  ) {
    this.#pictures = pictures
    this.#model = model
    this.#tokenizer = safeTokenizer(model)
    this.#template = template
    this.#contextTokens = limits.contextTokens
    this.#needsCheckpoints = limits.needsCheckpoints
    this.#sharedPrompts = new Set(limits.sharedPrompts?.map((text) => text.trim()))
    this.#limits = textLimits(model, limits.contextTokens)
  }

  /** How the model calls tools. */
  get tools(): ToolFamily {
    return this.#template?.tools ?? generalFamily
  }

  /** @throws TemplateRefused if the template does not allow the conversation. */
  read(request: PromptRequest): Prompt | PromptProblem {
    const { prompt, suffix } = request
    const [first = ""] = textPromptsOf(prompt)
    const read =
      "turns" in prompt
        ? this.#readTurns(prompt.turns, request)
        : suffix === undefined
          ? this.#readText(first)
          : this.#readInfill(first, suffix)
    if (!("tokens" in read)) return read
    if (read.tokens.length === 0) return { empty: true }
    return read.tokens.length >= this.#contextTokens ? { promptTokens: read.tokens.length } : read
  }

  /** The prompt up to the end of its last message; undefined where the template does not tell that end. After `read`. */
  open({ prompt, tools }: PromptRequest, vocabulary: Vocabulary, mostWords: number): OpenMessage | undefined {
    if (!("turns" in prompt)) return undefined
    return openMessage({
      text: this.#textOf(
        prompt.turns,
        tools?.tools ?? [],
        this.#template?.parts(prompt.turns, tools?.tools ?? []),
      ),
      tokenizer: this.#tokenizer,
      tokenize: (text) => this.#tokenize(text),
      vocabulary,
      mostWords,
    })
  }

  /** The thinking markers of a reply to a usual conversation; for another one the template may decide otherwise. */
  usualThought(thinking: boolean): ThoughtMarkers | undefined {
    const known = this.#usualThoughts.get(thinking)
    if (known !== undefined) return known
    let thought: ThoughtMarkers | undefined
    try {
      const parts = this.#template?.parts([{ role: "user", content: "a" }], [], thinking)
      thought = parts && this.#template?.thought(parts)
    } catch {
      // Such a template refuses most requests, with its own words.
    }
    if (thought !== undefined) this.#usualThoughts.set(thinking, thought)
    return thought
  }

  /** The tokens that are marks at the end of a sentence, if the vocabulary has a token for each. */
  get sentenceEnds(): ReadonlyArray<number> {
    this.#sentenceEnds ??= sentenceMarks.flatMap((mark) => {
      const tokens = this.#tokenizer(mark, false, "trimLeadingSpace")
      return tokens.length === 1 ? tokens : []
    })
    return this.#sentenceEnds
  }

  #readText(text: TextPrompt): Prompt | PromptProblem {
    const problem = this.#textProblem([text])
    if (problem !== undefined) return problem
    const tokens = typeof text === "string" ? this.#begun([...this.#tokenizer(text)]) : [...text]
    // An empty text prompt becomes the beginning-of-text token, if the vocabulary has one.
    const { bos } = this.#model.tokens
    if (tokens.length === 0 && bos !== null) tokens.push(bos)
    const mark = tokens.length - looseEnd
    const marks = this.#needsCheckpoints && mark > 0 ? [mark] : []
    return { tokens, spans: [], marks, shared: 0, thought: undefined }
  }

  /** The order prefix, suffix, middle, which llama.cpp's server uses too. */
  #readInfill(before: TextPrompt, after: string): Prompt | PromptProblem {
    const { middle, prefix, suffix } = this.#model.tokens.infill
    if (prefix === null || suffix === null || middle === null) return { noInfill: true }
    const problem = this.#textProblem([before, after])
    if (problem !== undefined) return problem
    const tokens = this.#begun([
      prefix,
      ...(typeof before === "string" ? this.#tokenizer(before) : before),
      suffix,
      ...this.#tokenizer(after),
      middle,
    ])
    return { tokens, spans: [], marks: [], shared: 0, thought: undefined }
  }

  /** The tokens of text that a reply is made to continue with, such as a marker of the template. */
  markerTokens(marker: string): ReadonlyArray<number> {
    return this.#tokenizer(marker, true, "trimLeadingSpace")
  }

  #readTurns(
    turns: ReadonlyArray<ChatTurn>,
    { owner, pictures = [], thinkingTokens, tools: use }: PromptRequest,
  ): Prompt | PromptProblem {
    const tools = use?.tools ?? []
    const problem = this.#tooLong(textsOf(turns, tools))
    if (problem !== undefined) return problem
    const parts = this.#template?.parts(turns, tools, thinkingTokens !== undefined)
    if (turns.some(({ content }) => typeof content !== "string")) {
      if (this.#pictures === undefined || parts === undefined)
        return { noPictures: "this model takes no pictures" }
      const show = (picture: Picture) => this.#pictures!.read(picture, owner)
      return this.#readPictures(parts, show, pictures, turns)
    }
    const text = this.#textOf(turns, tools, parts)
    const tokens = this.#tokenize(text)
    return {
      tokens,
      spans: [],
      marks: this.#needsCheckpoints ? this.#marksOf(text, turns[0]?.role === "system") : [],
      shared: this.#sharedIn(tokens, text, turns[0]),
      thought: parts && this.#template?.thought(parts),
    }
  }

  #textOf(
    turns: ReadonlyArray<ChatTurn>,
    tools: ReadonlyArray<Tool>,
    parts: ReadonlyArray<PromptPart> | undefined,
  ): LlamaText {
    return parts === undefined
      ? formatByGuess(this.#model, generalFamily.prepared(turns, tools))
      : LlamaText(parts.map((part) => (part.byTemplate ? new SpecialTokensText(part.text) : part.text)))
  }

  /** The parts of a prompt with pictures. As in other prompts, each part is tokenized on its own. */
  #readPictures(
    parts: ReadonlyArray<PromptPart>,
    show: (picture: Picture) => ReturnType<PictureReader["read"]>,
    pictures: ReadonlyArray<Picture>,
    turns: ReadonlyArray<ChatTurn>,
  ): Prompt | PromptProblem {
    const tokens: Array<number> = []
    const spans: Array<PictureSpan> = []
    /** Lengths after each part that callers wrote. */
    const written: Array<number> = []
    const add = (value: string | SpecialTokensText) => {
      const own = LlamaText([value]).tokenize(
        this.#tokenizer,
        tokens.length > 0 ? "trimLeadingSpace" : undefined,
      )
      for (const token of tokens.length > 0 ? own : this.#begun(own)) tokens.push(token)
    }
    for (const { byTemplate, picture, text } of parts) {
      if (picture === undefined) {
        add(byTemplate ? new SpecialTokensText(text) : text)
        if (!byTemplate) written.push(tokens.length)
        continue
      }
      const shown = pictures[picture]
      if (shown === undefined) return { noPictures: `there is no picture ${picture}` }
      for (const piece of show(shown)) {
        if ("marker" in piece) {
          add(new SpecialTokensText(piece.marker))
          continue
        }
        spans.push({ ...piece.span, at: tokens.length })
        for (const number of piece.numbers) tokens.push(number)
      }
      written.push(tokens.length)
    }
    if ((tokens.at(-1) ?? 0) < 0) return { noPictures: "the chat template ends with the picture" }
    const [first] = turns[0]?.role === "system" ? written : []
    const last = written.at(-1)
    const marks = this.#needsCheckpoints ? [first, last].filter((mark) => mark !== undefined) : []
    const isShared = this.#isShared(turns[0], parts.find(({ byTemplate }) => !byTemplate)?.text)
    const shared = isShared ? (first ?? 0) : 0
    return { tokens, spans, marks: [...new Set(marks)], shared, thought: this.#template?.thought(parts) }
  }

  #tokenize(text: LlamaText): Array<number> {
    return this.#begun(text.tokenize(this.#tokenizer))
  }

  /** Prepends the beginning-of-text token, if the model wants one and the template did not write it. */
  #begun(tokens: Array<number>): Array<number> {
    const { bos, shouldPrependBosToken } = this.#model.tokens
    return shouldPrependBosToken && bos !== null && tokens[0] !== bos ? [bos, ...tokens] : tokens
  }

  /**
   * Lengths that later prompts are likely to share: after the system message, and after the last message, before the
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

  /** Whether the first text of a prompt that callers wrote is a system message that all share. */
  #isShared(first: ChatTurn | undefined, text: string | undefined): boolean {
    if (this.#sharedPrompts.size === 0 || first?.role !== "system" || text === undefined) return false
    const content = first.content.trim()
    return this.#sharedPrompts.has(content) && text.trim() === content
  }

  /** Tokens of the prompt up to the end of a system message that all share: what is before it is the template's. */
  #sharedIn(tokens: ReadonlyArray<number>, { values }: LlamaText, first: ChatTurn | undefined): number {
    const at = values.findIndex((value) => typeof value === "string")
    const text = values[at]
    if (typeof text !== "string" || !this.#isShared(first, text)) return 0
    const beginning = this.#tokenize(LlamaText(values.slice(0, at + 1)))
    return beginning.every((token, index) => token === tokens[index]) ? beginning.length : 0
  }

  /** What is wrong with texts and token ids, as far as it is known before the texts are tokenized. */
  #textProblem(prompts: ReadonlyArray<TextPrompt>): PromptProblem | undefined {
    const { length: size } = this.#model.fileInfo.metadata.tokenizer?.ggml?.tokens ?? []
    for (const prompt of prompts) {
      if (typeof prompt === "string") continue
      if (prompt.length >= this.#contextTokens) return { promptTokens: prompt.length }
      const unknown = prompt.find((token) => !(token >= 0 && token < size))
      if (unknown !== undefined) return { unknownToken: unknown, size }
    }
    return this.#tooLong(prompts.filter((prompt) => typeof prompt === "string"))
  }

  /** Texts that certainly do not fit, with an estimate of their tokens. */
  #tooLong(texts: ReadonlyArray<string>): PromptProblem | undefined {
    const counting = estimateOfTooLong(texts, this.#limits)
    let step = counting.next()
    while (step.done !== true) step = counting.next(this.#tokenizer(step.value).length)
    return step.value === undefined ? undefined : { promptTokens: step.value }
  }
}

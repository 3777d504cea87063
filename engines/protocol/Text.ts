// What a text engine takes and gives: a prompt in, pieces of text out. Plain data that can be sent between processes.
import type { JsonObject } from "#domain/wire/Json.ts"

/** A call of a tool that the model made. */
export interface ToolCall {
  /** Given by the gateway, or by the caller for calls in the history. */
  readonly id: string
  readonly name: string
  /** JSON text of an object. */
  readonly arguments: string
}

/** A decoded picture. */
export interface Picture {
  readonly width: number
  readonly height: number
  /** Red, green and blue of every pixel, 8 bits each, sRGB, row by row from the top: width * height * 3 bytes. */
  readonly rgb: Uint8Array
  /** SHA-256 of width, height and rgb, hexadecimal. Equal hashes stand for equal pictures. */
  readonly hash: string
  /** As the request asks. `low`: the model may see a small version of the picture, which costs fewer tokens. */
  readonly detail: "low" | "high" | "auto"
}

/** A picture as it is sent to an engine process: its pixels lie in a file of the node, which has nothing else in it. */
export interface PictureFile extends Omit<Picture, "rgb"> {
  /** Absolute. */
  readonly path: string
}

export type ContentPart =
  | { readonly kind: "text"; readonly text: string }
  /** `picture`: its index in the request's `pictures`. */
  | { readonly kind: "picture"; readonly picture: number }

/** The content of a user message: text, or text and pictures in the order in which the model reads them. */
export type Content = string | ReadonlyArray<ContentPart>

/** One message of a conversation. */
export type ChatTurn =
  | { readonly role: "system"; readonly content: string }
  | { readonly role: "user"; readonly content: Content }
  | {
      readonly role: "assistant"
      readonly content: string
      /** What the model thought before it answered. */
      readonly reasoning?: string
      readonly calls?: ReadonlyArray<ToolCall>
    }
  /** The result of a call of an earlier assistant message. */
  | { readonly role: "tool"; readonly content: string; readonly callId: string; readonly name: string }

/** A function that the model may call. Its name has 1 to 64 of the characters a-z, A-Z, 0-9, _ and -. */
export interface Tool {
  readonly name: string
  readonly description?: string
  /** JSON Schema of the arguments, which are an object. */
  readonly parameters: JsonObject
  /** True: a schema that cannot be held exactly is refused. False: what cannot be held is left open. */
  readonly strict: boolean
}

/** The tools of a request. At least one; their names differ. */
export interface ToolUse {
  readonly tools: ReadonlyArray<Tool>
  /** `auto`: the model decides; `required`: at least one call; a name: exactly this tool. */
  readonly choice: "auto" | "required" | { readonly name: string }
  /** False: at most one call. */
  readonly parallel: boolean
}

/** What the whole answer has to be: any JSON object, or a JSON value that a JSON Schema (2020-12) accepts. */
export type ResponseFormat =
  | { readonly kind: "json" }
  | { readonly kind: "schema"; readonly schema: JsonObject | boolean; readonly strict: boolean }

/** Sampling parameters in the terms of the API (docs/protocol.md). Their ranges are checked before a request is sent. */
export interface Sampling {
  /** 0 is greedy. */
  readonly temperature: number
  readonly topP: number
  /** 0 means the whole vocabulary. */
  readonly topK: number
  readonly frequencyPenalty: number
  readonly presencePenalty: number
  /** 32-bit. Equal seeds give equal text, whatever other requests run at the same time. */
  readonly seed: number
}

export interface GenerateRequest {
  /**
   * Whose request it is: a number that stands for an organization as long as the node runs. Sequences, checkpoints and rows of
   * pictures are used again only for requests with an equal one, so that nothing tells of another organization's prompts.
   */
  readonly owner?: number
  readonly prompt: { readonly turns: ReadonlyArray<ChatTurn> } | { readonly text: string } | TextPrompts
  /** Chat only, at most 16; user messages refer to them. Only for a model with `TextFacts.pictures`. */
  readonly pictures?: ReadonlyArray<Picture>
  /** Upper bound; the engine lowers it to what the context has left. 0 only with `echo`: the prompt is evaluated, nothing generated. */
  readonly maxTokens: number
  readonly sampling: Sampling
  /** Up to 4 sequences; never part of the output. */
  readonly stop: ReadonlyArray<string>
  /** Chat only. */
  readonly tools?: ToolUse
  readonly format?: ResponseFormat
  /** Present: log probabilities of the tokens, each with this number (0 to 20) of most likely tokens. */
  readonly logprobs?: number
  /** Added to the logits before sampling: token id and a bias of -100 to 100. -100 excludes the token. */
  readonly logitBias?: ReadonlyArray<readonly [token: number, bias: number]>
  /** The reply does not end by itself before it has this many tokens. */
  readonly minTokens?: number
  /** Chat only. Present: the model may think before it answers, in at most this many tokens. Absent: it answers at once. */
  readonly thinkingTokens?: number
  /** Replies to return, for each prompt. Default 1. They share the prompt, which is evaluated once. */
  readonly replies?: number
  /** Replies to generate, of which the `replies` most likely ones are returned. Default `replies`. Never streamed. */
  readonly bestOf?: number
  /** Text prompts only: the reply begins with the prompt, and its log probabilities with those of the prompt's tokens. */
  readonly echo?: boolean
  /** Text prompts only: what follows the reply, for models that fill in the middle. */
  readonly suffix?: string
  /** Chat only, without pictures: no reply, but how probable it is that the last message, one of the user, ends where it does. */
  readonly messageEnd?: MessageEndTerms
}

/** A text, or the ids of its tokens, which are taken as they stand. */
export type TextPrompt = string | ReadonlyArray<number>

/**
 * At least one prompt, each with replies of its own, which are evaluated one after the other. Reply r of prompt p is number
 * p times `replies` plus r.
 */
interface TextPrompts {
  readonly texts: ReadonlyArray<TextPrompt>
}

export interface MessageEndTerms {
  /** It is not computed where that is expected to take longer than this, milliseconds. */
  readonly withinMs: number
}

/**
 * How probable a model takes it that a message of the user ends, after each of its last words; the last one is where it ends. Natural
 * logarithms. A model expects the end of a message in most cases behind a mark that ends a sentence, which transcripts may lack, so
 * `stops` counts these marks too.
 */
export interface MessageEnd {
  readonly ends: ReadonlyArray<number>
  readonly stops: ReadonlyArray<number>
}

/**
 * Why there is no `MessageEnd`. `template`: the chat template has no token that ends a user's message, or the engine no access to
 * logits. `slow`: `withinMs` would not do. `occupied`: a sequence would lose more of another conversation than it has of this one.
 */
export type NoMessageEnd = "template" | "slow" | "occupied"

/** A request as it is sent to an engine process. */
export interface GenerateCall extends Omit<GenerateRequest, "pictures"> {
  readonly pictures?: ReadonlyArray<Picture | PictureFile>
}

export interface GenerateStarted {
  readonly promptTokens: number
  /** Prompt tokens whose state was kept from an earlier request of this owner, or that all share, and are not evaluated again. */
  readonly cachedTokens: number
  /** Of `promptTokens`: the rows of embeddings that the pictures became, one for each cell of their grids. */
  readonly imageTokens?: number
}

/**
 * One token and its natural logarithm of probability, before temperature, top_k and top_p. NaN for the first token of a prompt, which
 * nothing precedes.
 */
export interface TokenLogprob {
  /** The token's text; an incomplete character is written as U+FFFD. */
  readonly token: string
  readonly bytes: ReadonlyArray<number>
  readonly logprob: number
}

export interface SampledLogprob extends TokenLogprob {
  /** UTF-16 units that the token adds to the text, where that may not be the length of `token`. */
  readonly units?: number
  /** The most likely tokens, the most likely first. */
  readonly top: ReadonlyArray<TokenLogprob>
}

/** What a piece of text belongs to. Absent: the answer itself. */
export type TextPart =
  | { readonly kind: "reasoning" }
  /** A call begins; the delta has no text. Calls of one reply are numbered from 0. */
  | { readonly kind: "call"; readonly call: number; readonly name: string }
  /** The next piece of the JSON text of a call's arguments. */
  | { readonly kind: "arguments"; readonly call: number }

/** Final text: whole UTF-8 characters that cannot become part of a stop sequence. */
export interface TextDelta {
  readonly text: string
  /** Completion tokens generated so far by the request, those of this delta and of all its replies included. */
  readonly completionTokens: number
  /** Absent for plain text of the only reply, which is the most frequent case by far. */
  readonly detail?: DeltaDetail
}

export interface DeltaDetail {
  /** Which reply of all prompts; absent is 0. */
  readonly reply?: number
  readonly part?: TextPart
  readonly logprobs?: ReadonlyArray<SampledLogprob>
}

export type GenerateFinish = "stop" | "length" | "tool_calls"

export interface GenerateEnd {
  /** Of reply 0. */
  readonly finishReason: GenerateFinish
  readonly promptTokens: number
  /** Of all replies, those of thinking and of call syntax included. */
  readonly completionTokens: number
  readonly reasoningTokens?: number
  /** As in `GenerateStarted`. */
  readonly imageTokens?: number
  /** Of all prompts, if there are several. */
  readonly cachedTokens?: number
  /** One for each reply if there are several. */
  readonly finishReasons?: ReadonlyArray<GenerateFinish>
  /** Where the request asked for it. */
  readonly messageEnd?: MessageEnd | NoMessageEnd
}

export interface TextFacts {
  readonly contextTokens: number
  /** Sequences that are decoded side by side. */
  readonly slots: number
  /** For the start log and `/docs`, for example "llama, 2.5 M parameters". */
  readonly summary: string
  /** True if it prepares requests before they have a slot, see Preparation. */
  readonly prepares?: boolean
  /** Absent if the model takes no pictures. */
  readonly pictures?: {
    /** Width times height. Larger pictures are scaled down to fit before they reach the engine, keeping their shape. */
    readonly maxPixels: number
    /** For operators, for example "idefics3, 512 px tiles". */
    readonly summary: string
  }
}

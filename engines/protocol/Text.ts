// What a text engine takes and gives: a prompt in, pieces of text out. Plain data that can be sent between processes.

export interface ChatTurn {
  readonly role: "system" | "user" | "assistant"
  readonly content: string
}

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
  readonly prompt: { readonly turns: ReadonlyArray<ChatTurn> } | { readonly text: string }
  /** Upper bound; the engine lowers it to what the context has left. */
  readonly maxTokens: number
  readonly sampling: Sampling
  /** Up to 4 sequences; never part of the output. */
  readonly stop: ReadonlyArray<string>
}

export interface GenerateStarted {
  readonly promptTokens: number
  /** Prompt tokens whose state was kept from an earlier request, so that they are not evaluated again. */
  readonly cachedTokens: number
}

/** Final text: whole UTF-8 characters that cannot become part of a stop sequence. */
export interface TextDelta {
  readonly text: string
  /** Completion tokens generated so far, those of this delta included. */
  readonly completionTokens: number
}

export interface GenerateEnd {
  readonly finishReason: "stop" | "length"
  readonly promptTokens: number
  readonly completionTokens: number
}

export interface TextFacts {
  readonly contextTokens: number
  /** Sequences that are decoded side by side. */
  readonly slots: number
  /** For the start log and `/docs`, for example "llama, 1.0 M parameters". */
  readonly summary: string
}

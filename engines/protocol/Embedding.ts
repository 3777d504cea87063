// What an embedding engine takes and gives: texts or token ids in, one vector for each out. Plain data that can be sent between
// processes.

/** A text, or the ids of its tokens as the model's own tokenizer gives them. */
export type EmbedInput = string | ReadonlyArray<number>

/** Most tokens of a request, as OpenAI's API has it. */
export const maxRequestTokens = 300_000

/** Most values of the vectors of a request: its reply has at most 52 MB. */
export const maxRequestValues = 4_194_304

/** How the text of a vector is written: as a JSON list of numbers, or as base64 of its 32-bit floats, little-endian, in quotes. */
type VectorFormat = "float" | "base64"

export interface EmbedRequest {
  /** At least one. None is empty. */
  readonly inputs: ReadonlyArray<EmbedInput>
  readonly format: VectorFormat
  /** The vectors keep this many of their first values and get length 1 again. Absent: all values. */
  readonly dimensions?: number
}

export interface EmbedStarted {
  /** Tokens of all inputs. */
  readonly promptTokens: number
}

/** The vectors of some inputs that follow each other. Units arrive in the order of the inputs. */
export interface Vectors {
  /**
   * JSON text of each vector. Engines write it, because writing millions of numbers would hold the gateway's event loop for
   * too long.
   */
  readonly texts: ReadonlyArray<string>
  /** Tokens of these inputs. */
  readonly promptTokens: number
}

export interface EmbedEnd {
  readonly promptTokens: number
}

export interface EmbeddingFacts {
  /** Tokens of one input. */
  readonly contextTokens: number
  /** Values of a vector. */
  readonly dimensions: number
  /** Requests that run side by side. */
  readonly slots: number
  readonly summary: string
}

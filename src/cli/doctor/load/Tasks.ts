// What the load client of `edgewise doctor` can be asked to do and what it answers: the messages between the command's own
// thread and the client's thread (loadClientMain.ts). Times are milliseconds. Types only.

/** The private node. */
export interface Target {
  readonly port: number
  readonly key: string
}

interface Bounded {
  /** Everything that still runs after this many milliseconds is cancelled, and the result says what there was. */
  readonly deadlineMs: number
}

/** Prompts of which only the first token is wanted, all sent at once. */
export interface PromptTask extends Bounded {
  readonly kind: "prompts"
  readonly model: string
  readonly prompts: ReadonlyArray<string>
}

export interface PromptResult {
  /** One for each prompt that was answered in time. */
  readonly answered: ReadonlyArray<{ readonly firstTokenMs: number; readonly promptTokens: number }>
  /** From the first request to the last first token. */
  readonly tookMs: number
}

/** Streams that go on until the deadline; a reply that ends is followed by another with the same prompt. */
export interface ReplyTask extends Bounded {
  readonly kind: "replies"
  readonly model: string
  readonly prompts: ReadonlyArray<string>
  /** Streams that the model writes side by side; others wait for a slot, which none becomes free. */
  readonly running: number
  /** Counted time; it begins when so many streams have their first token, or when no more than it is left. */
  readonly windowMs: number
}

export interface ReplyResult {
  readonly firstTokenMs: ReadonlyArray<number>
  /** `began`: streams that had their first token when the counting began. */
  readonly counted: { readonly tokens: number; readonly tookMs: number; readonly began: number } | undefined
}

/** One reply from beginning to end. */
export interface ReplyOnceTask extends Bounded {
  readonly kind: "reply"
  readonly model: string
  readonly prompt: string
  readonly maxTokens: number
}

export interface ReplyOnceResult {
  readonly firstTokenMs: number
  readonly tookMs: number
  readonly promptTokens: number
  readonly completionTokens: number
}

export interface Voice {
  readonly model: string
  /** Fields of the request beside text and format: a preset voice, or a reference clip. */
  readonly fields: Readonly<Record<string, string>>
}

/** One text spoken. */
export interface SpeakTask extends Bounded {
  readonly kind: "speak"
  readonly voice: Voice
  readonly text: string
  readonly stream: boolean
}

export interface SpeakResult {
  readonly firstAudioMs: number
  readonly tookMs: number
  readonly audioMs: number
}

/** Streams of speech begun at once, more than the node admits. */
export interface PlayTask extends Bounded {
  readonly kind: "play"
  readonly voice: Voice
  readonly text: string
  readonly streams: number
}

export interface PlayResult {
  readonly refused: number
  /** Of the streams that were admitted and whose audio began in time. */
  readonly firstAudioMs: ReadonlyArray<number>
  /** Streams whose listener would have heard a silence before the end. */
  readonly ranDry: number
}

/** A file sent for a synchronous transcription. */
export interface TranscribeTask extends Bounded {
  readonly kind: "transcribe"
  readonly model: string
  readonly wav: Uint8Array
}

export interface TranscribeResult {
  readonly tookMs: number
}

/** Live sessions that speak in real time after they have sent `aheadSeconds` of audio at once. */
export interface LiveTask extends Bounded {
  readonly kind: "live"
  readonly model: string
  readonly speakers: number
  /** 16 kHz, mono, little-endian 16-bit; repeated where it is too short. */
  readonly pcm: Uint8Array
  readonly aheadSeconds: number
  readonly seconds: number
}

export interface LiveResult {
  /** From sending the last sample that a caption covers to the caption, all sessions together. */
  readonly captionLagMs: ReadonlyArray<number>
  /** From `stop` to the final result, for the sessions that got one. */
  readonly finalMs: ReadonlyArray<number>
  /** Sessions that were not admitted, and sessions that ended with an error. */
  readonly refused: number
  readonly failed: number
}

/** Live sessions opened one after the other until one is refused; they send nothing. */
export interface AdmissionTask extends Bounded {
  readonly kind: "admission"
  readonly model: string
  /** No more than this many are tried. */
  readonly most: number
}

export interface AdmissionResult {
  readonly admitted: number
  readonly refused: boolean
}

export interface Results {
  readonly prompts: PromptResult
  readonly replies: ReplyResult
  readonly reply: ReplyOnceResult
  readonly speak: SpeakResult
  readonly play: PlayResult
  readonly transcribe: TranscribeResult
  readonly live: LiveResult
  readonly admission: AdmissionResult
}

export type Task =
  | PromptTask
  | ReplyTask
  | ReplyOnceTask
  | SpeakTask
  | PlayTask
  | TranscribeTask
  | LiveTask
  | AdmissionTask

export type ResultOf<T extends Task> = Results[T["kind"]]

/** A task with its number, as it travels. */
export interface Asked {
  readonly id: number
  readonly task: Task
}

export type Answered =
  | { readonly id: number; readonly result: Results[Task["kind"]] }
  | { readonly id: number; readonly problem: string }

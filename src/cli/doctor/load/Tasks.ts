// The tasks and results of the load client: messages between the command's thread and the client's thread
// (loadClientMain.ts). Times are milliseconds. Types only.

interface Bounded {
  /** Everything that still runs after this many milliseconds is cancelled, and the result holds what was measured. */
  readonly deadlineMs: number
}

/** Prompts whose first token is measured, all sent at once. */
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

/** Streams that run until the deadline. When a reply ends, another with the same prompt follows. */
export interface ReplyTask extends Bounded {
  readonly kind: "replies"
  readonly model: string
  readonly prompts: ReadonlyArray<string>
  /** Streams that the model generates in parallel. Others wait for a slot, and none becomes free. */
  readonly running: number
  /** Counted time. It begins when this many streams have their first token, or when no more than it is left. */
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
  readonly voice: string
}

/** One synthesized text. */
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

/** Streams of speech started at once, more than the node admits. */
export interface PlayTask extends Bounded {
  readonly kind: "play"
  readonly voice: Voice
  readonly text: string
  readonly streams: number
}

export interface PlayResult {
  readonly refused: number
  /** Of the admitted streams whose audio began in time. */
  readonly firstAudioMs: ReadonlyArray<number>
  /** Streams whose playback would have had a gap before the end. */
  readonly ranDry: number
}

/** A file for a synchronous transcription. */
export interface TranscribeTask extends Bounded {
  readonly kind: "transcribe"
  readonly model: string
  /** 16 kHz, mono. */
  readonly samples: Int16Array
}

export interface TranscribeResult {
  readonly tookMs: number
}

/** Live sessions that send audio in real time, after `aheadSeconds` of audio at once. */
export interface LiveTask extends Bounded {
  readonly kind: "live"
  readonly model: string
  readonly speakers: number
  /** 16 kHz, mono; repeated if it is too short. */
  readonly samples: Int16Array
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

/** Live sessions opened one after the other until one is refused; they send no audio. */
export interface AdmissionTask extends Bounded {
  readonly kind: "admission"
  readonly model: string
  /** Sessions tried at most. */
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

/** A task with its number, as it is sent. */
export interface Asked {
  readonly id: number
  readonly task: Task
}

export type Answered =
  | { readonly id: number; readonly result: Results[Task["kind"]] }
  | { readonly id: number; readonly problem: string }

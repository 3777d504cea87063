// The tasks and results of the load client: messages between the command's thread and the client's thread
// (loadClientMain.ts). Times are milliseconds. Types only.
import type { Target } from "#harness/client/Exchange.ts"

export interface Voice {
  readonly model: string
  readonly voice: string
}

interface Tasks {
  /** Prompts whose first token is measured, all sent at once. */
  readonly prompts: {
    readonly task: { readonly model: string; readonly prompts: ReadonlyArray<string> }
    readonly result: {
      /** One for each prompt that was answered in time. */
      readonly answered: ReadonlyArray<{ readonly firstTokenMs: number; readonly promptTokens: number }>
      /** From the first request to the last first token. */
      readonly tookMs: number
    }
  }
  /** Streams that run until the deadline. When a reply ends, another with the same prompt follows. */
  readonly replies: {
    readonly task: {
      readonly model: string
      readonly prompts: ReadonlyArray<string>
      /** Streams that the model generates in parallel. Others wait for a slot, and none becomes free. */
      readonly running: number
      /** Counted time. It begins when this many streams have their first token, or when no more than it is left. */
      readonly windowMs: number
    }
    readonly result: {
      readonly firstTokenMs: ReadonlyArray<number>
      /** `began`: streams that had their first token when the counting began. */
      readonly counted:
        | { readonly tokens: number; readonly tookMs: number; readonly began: number }
        | undefined
    }
  }
  /** One reply from beginning to end. */
  readonly reply: {
    readonly task: { readonly model: string; readonly prompt: string; readonly maxTokens: number }
    readonly result: {
      readonly firstTokenMs: number
      readonly tookMs: number
      readonly promptTokens: number
      readonly completionTokens: number
    }
  }
  /** One synthesized text. */
  readonly speak: {
    readonly task: { readonly voice: Voice; readonly text: string; readonly stream: boolean }
    readonly result: { readonly firstAudioMs: number; readonly tookMs: number; readonly audioMs: number }
  }
  /** Streams of speech started at once, more than the node admits. */
  readonly play: {
    readonly task: { readonly voice: Voice; readonly text: string; readonly streams: number }
    readonly result: {
      readonly refused: number
      /** Of the admitted streams whose audio began in time. */
      readonly firstAudioMs: ReadonlyArray<number>
      /** Streams whose playback would have had a gap before the end. */
      readonly ranDry: number
    }
  }
  /** A file for a synchronous transcription; its samples are 16 kHz, mono. */
  readonly transcribe: {
    readonly task: { readonly model: string; readonly samples: Int16Array }
    readonly result: { readonly tookMs: number }
  }
  /** Live sessions that send audio in real time, after `aheadSeconds` of audio at once. */
  readonly live: {
    readonly task: {
      readonly model: string
      readonly speakers: number
      /** 16 kHz, mono; repeated if it is too short. */
      readonly samples: Int16Array
      readonly aheadSeconds: number
      readonly seconds: number
    }
    readonly result: {
      /** From sending the last sample that a caption covers to the caption, all sessions together. */
      readonly captionLagMs: ReadonlyArray<number>
      /** From `stop` to the final result, for the sessions that got one. */
      readonly finalMs: ReadonlyArray<number>
      /** Sessions that were not admitted, and sessions that ended with an error. */
      readonly refused: number
      readonly failed: number
    }
  }
  /** Live sessions opened one after the other until one is refused, at most `most`; they send no audio. */
  readonly admission: {
    readonly task: { readonly model: string; readonly most: number }
    readonly result: { readonly admitted: number; readonly refused: boolean }
  }
}

type Kind = keyof Tasks

/** Everything that still runs after `deadlineMs` is cancelled, and the result holds what was measured. */
type TaskOf<K extends Kind> = Tasks[K]["task"] & { readonly kind: K; readonly deadlineMs: number }

export type Task = { readonly [K in Kind]: TaskOf<K> }[Kind]

export type ResultOf<T extends Task> = Tasks[T["kind"]]["result"]

export type Run<K extends Kind> = (target: Target, task: TaskOf<K>) => Promise<Tasks[K]["result"]>

/** A task with its number, as it is sent. */
export interface Asked {
  readonly id: number
  readonly task: Task
}

export type Answered =
  | { readonly id: number; readonly result: ResultOf<Task> }
  | { readonly id: number; readonly problem: string }

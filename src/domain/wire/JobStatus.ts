// The states of a transcription job (protocol 9.6) as a pure table. Transitions that it does not list are impossible.
export type JobStatus = "accepted" | "processing" | "completed" | "failed" | "cancelled"

export type JobEvent =
  /** A worker took it. */
  | "start"
  /** Its transcript is stored. */
  | "complete"
  /** No transcript is possible, because of its audio or its engine. */
  | "fail"
  /** Its owner cancelled it. */
  | "cancel"
  /** It goes back into the queue: the node died or is draining, or its organization has no credit left. */
  | "return"

const table: Readonly<Record<JobStatus, Partial<Readonly<Record<JobEvent, JobStatus>>>>> = {
  accepted: { start: "processing", cancel: "cancelled", return: "accepted" },
  processing: { complete: "completed", fail: "failed", cancel: "cancelled", return: "accepted" },
  completed: {},
  failed: {},
  cancelled: {},
}

/** The state after `event`. Undefined if the event has no effect in this state. */
export const nextJobStatus = (status: JobStatus, event: JobEvent): JobStatus | undefined =>
  table[status][event]

export const isFinished = (status: JobStatus): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"

// The states of a transcription job as a pure table. A pair that the table does not list cannot happen.
export type JobStatus = "accepted" | "processing" | "completed" | "failed" | "cancelled"

export type JobEvent =
  /** A worker took it. */
  | "start"
  /** Its transcript is stored. */
  | "complete"
  /** Its audio, or its engine, cannot give a transcript. */
  | "fail"
  /** Its owner does not want it any more. */
  | "cancel"
  /** It goes back into the queue: the node died under it, is draining, or its organization has no credit left. */
  | "return"

const table: Readonly<Record<JobStatus, Partial<Readonly<Record<JobEvent, JobStatus>>>>> = {
  accepted: { start: "processing", cancel: "cancelled", return: "accepted" },
  processing: { complete: "completed", fail: "failed", cancel: "cancelled", return: "accepted" },
  completed: {},
  failed: {},
  cancelled: {},
}

/** The state after `event`, or undefined where the event changes nothing any more. */
export const nextJobStatus = (status: JobStatus, event: JobEvent): JobStatus | undefined =>
  table[status][event]

export const isFinished = (status: JobStatus): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"

// The states of a deployed model as a pure table: the values of `loading_status` (docs/protocol/text.md).
// A pair that the table does not list cannot happen; asking for it is a defect of the caller.
export type ModelStatus = "unloaded" | "loading" | "loaded" | "failed"

export type ModelEvent =
  /** It is wanted in memory: by the node's start, an operator, or the first request. */
  | "load"
  /** The engine answered that it is ready, at first or again after a crash. */
  | "ready"
  /** The engine process died or hung and is being started again. */
  | "crashed"
  /** The engine refused the weights, or crashed more often than the restart intensity allows. */
  | "gave-up"
  /** The engine process is gone and its memory is back. */
  | "unloaded"
  /** It was to be unloaded and its process has not ended: its memory is not back. */
  | "stuck"

const table: Readonly<Record<ModelStatus, Partial<Readonly<Record<ModelEvent, ModelStatus>>>>> = {
  unloaded: { load: "loading", unloaded: "unloaded" },
  loading: {
    ready: "loaded",
    crashed: "loading",
    "gave-up": "failed",
    unloaded: "unloaded",
    stuck: "failed",
  },
  loaded: { crashed: "loading", "gave-up": "failed", unloaded: "unloaded", stuck: "failed" },
  failed: { load: "loading", unloaded: "unloaded", stuck: "failed" },
}

/** The state after `event`, or undefined where the event cannot happen in `status`. */
export const next = (status: ModelStatus, event: ModelEvent): ModelStatus | undefined => table[status][event]

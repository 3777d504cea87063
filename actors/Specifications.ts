// What the node's supervision tree is made of, as data: for each kind of child how it is restarted, how often, and how long
// it may take to stop, with a reason beside every number; and what each parent does when a child of it has
// given up. Child.ts reads it.
//
//   node
//   ├─ store                            the database and what is written to it later
//   ├─ devices                          one actor for the host, one for each GPU
//   ├─ models                           one actor for each model, also for those that a reload has replaced
//   │   └─ model …
//   │       └─ engine …                 one process or thread; not an actor, see docs/architecture.md
//   ├─ memory                           memory watch
//   ├─ live sessions                    one actor for each session that sends audio, and the search for idle ones
//   ├─ conversations                    one child for each conversation
//   │   └─ conversation …
//   │       └─ turn taking              the actor that decides who speaks when
//   ├─ calls                            where a node takes WebRTC calls: their process
//   │   └─ process of calls
//   └─ transcription jobs               lost jobs, old jobs
//       └─ jobs in work                 the dispatcher, one actor for each job
import type { ChildTerms, RestartPolicy } from "./Child.ts"
import type { NodeKind } from "./TreeNode.ts"

/** After `stop`, an engine process has this long to close its weights before it is killed. A guess. */
export const engineStopMs = 3_000

/** A killed process is gone within milliseconds, unless a driver holds it. A guess: then this long is waited. */
export const engineKillMs = 5_000

/** An actor or a loop of the node. A defect in it is our bug: restart at once, but not in a loop. */
const ours: RestartPolicy = { intensity: 5, periodMs: 10_000, backoffBaseMs: 10, backoffCapMs: 1_000 }

/** A supervisor waits for its children, which all have a time of their own. */
const untilChildrenHaveStopped = Number.POSITIVE_INFINITY

/**
 * An engine process. 3 restarts in 30 s: a crash that a request provoked is forgiven, weights that crash on every
 * load are not retried for ever. 100 ms first, because a crashed engine's clients are already reconnecting;
 * 10 s at most, because a caller was told to come back. `transient`: refused weights end it, and no restart cures them.
 */
export const engine: ChildTerms = {
  kind: "engine",
  restart: "transient",
  intensity: { intensity: 3, periodMs: 30_000, backoffBaseMs: 100, backoffCapMs: 10_000 },
  // Its stop has deadlines of its own: engineStopMs, a kill, engineKillMs.
  shutdownMs: Number.POSITIVE_INFINITY,
}

/** A model. It stops with its engine, and looks for two seconds whether a GPU has given the memory back. */
export const model: ChildTerms = {
  kind: "model",
  restart: "permanent",
  intensity: ours,
  shutdownMs: untilChildrenHaveStopped,
  childGivesUp: {
    does: "goes on",
    outcome: "the model has failed; after 30 s a request may load it again, an operator's load at once",
  },
}

/** A processor or GPU. It only keeps books, so it stops at once. */
export const device: ChildTerms = { kind: "device", restart: "permanent", intensity: ours, shutdownMs: 1_000 }

/** A live session. Its client has to begin a new one: audio that was lost cannot be sent again. 5 s: a guess. */
export const session: ChildTerms = {
  kind: "session",
  restart: "temporary",
  intensity: ours,
  shutdownMs: 5_000,
}

/**
 * A conversation. Its socket ends with it, so its client has to begin a new one. 5 s: a guess, for the close frame to a client that
 * reads slowly; the sentence that is being spoken was finished before, while the node drained.
 */
export const conversation: ChildTerms = session

/**
 * The process of calls. Its end is the end of all calls, so it is back within 300 ms; a caller that could end it again and again
 * is a defect that an operator has to see: 10 restarts in a minute, a guess. It is killed, so it stops at once.
 */
export const calls: ChildTerms = {
  kind: "worker",
  restart: "permanent",
  intensity: { intensity: 10, periodMs: 60_000, backoffBaseMs: 10, backoffCapMs: 5_000 },
  shutdownMs: 1_000,
}

/**
 * A transcription job in work. It is not restarted but goes back into its queue, where it waits as its failure requires. 10 s:
 * a guess, for the decoder process to end and the row to be written.
 */
export const job: ChildTerms = { kind: "job", restart: "temporary", intensity: ours, shutdownMs: 10_000 }

/** A loop that works at intervals. 5 s: a guess, for a statement of the database that is under way. */
export const worker: ChildTerms = { kind: "worker", restart: "permanent", intensity: ours, shutdownMs: 5_000 }

/**
 * Jobs in work, with their dispatcher. A dispatcher that gives up takes them with it: they go back to their queue, and begin again with
 * a new one.
 */
export const jobsInWork: ChildTerms = {
  kind: "supervisor",
  restart: "permanent",
  intensity: ours,
  shutdownMs: untilChildrenHaveStopped,
  childGivesUp: { does: "restarts", outcome: "jobs in work go back to their queue and begin again" },
}

/**
 * A part of the node that is built once, by its layer. What it gives to others (the registry, the devices) is held by the
 * handlers of the listener, so it cannot be replaced while the node runs: its children are restarted, the part itself is not. A child that
 * gives up does not end the node, whose models serve without it: the node is `degraded`, and an operator starts it again.
 * @param outcome what follows when a child has given up, in words for operators
 */
export const part = (outcome: string, kind: NodeKind = "supervisor"): ChildTerms => ({
  kind,
  restart: "temporary",
  intensity: ours,
  shutdownMs: untilChildrenHaveStopped,
  childGivesUp: { does: "goes on", outcome: `${outcome} until the node is started again` },
})

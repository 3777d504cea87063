// This node's supervision tree as data, with a reason beside every number. No logic: Supervisor.ts reads it.
//
//   Node
//   ├─ ModelRegistry
//   │   └─ Model (one per deployed model)      the actor that loads and unloads
//   │       └─ EngineHost                      owns one engine process or thread
//   └─ Drain                                   admission switch of the whole node
//
// All one-for-one: models share nothing, so one model's death says nothing about another's health.
import type { RestartPolicy } from "./Supervisor.ts"

/**
 * An engine process. 3 restarts in 30 s: a crash that a request provoked is forgiven, weights that crash on every
 * load are not retried for ever. 100 ms first, because a crashed engine's clients are already reconnecting;
 * 10 s at most, because a caller was told to come back.
 */
export const engineHost: RestartPolicy = {
  intensity: 3,
  periodMs: 30_000,
  backoffBaseMs: 100,
  backoffCapMs: 10_000,
}

/** A Model actor. It only passes messages on, so a defect in it is our bug: restart at once, but not in a loop. */
export const model: RestartPolicy = { intensity: 5, periodMs: 10_000, backoffBaseMs: 10, backoffCapMs: 1_000 }

/** Control messages waiting for one model; each is an operator's or a first request's, so 1,024 is a flood. */
export const modelMailbox = 1_024

/**
 * How long a model stays `failed` before a request may try to load it again, and what Retry-After says meanwhile.
 * A guess: long enough not to burn a core on hopeless weights, short enough to be worth waiting for.
 */
export const reviveAfterMs = 30_000

/** After `stop`, an engine process has this long to close its weights before it is killed. A guess. */
export const engineStopMs = 3_000

/**
 * While others are served in person, background work (a window of a transcription job) begins this often at most. A
 * guess: a window is a tenth of it on the demonstration weights, so those in person keep nine tenths of their engine.
 */
export const backgroundPatienceMs = 1_000

// The life of one model: what of it is in memory, what an operator has ordered, who waits for what, and what it decides of each message.
// Pure. The actor Model carries the commands out; requests go to the engine without passing here.
//
// An engine is brought in, is there, and is taken out; it is never replaced while its process may still hold memory.
//
// None is in memory ("none").
//   A request or a load: one is brought in. A request is refused instead while an operator's unload is in force, and for 30 s after a failure.
//   An unload: nothing is to be done, and from now on requests are refused until an operator loads it.
// It is being brought in ("coming"): weights are found, memory is claimed, other models may be unloaded for it, the process starts and loads.
//   A request or a load waits for its end, and gets the same answer as all that wait. A forced load is followed by another one.
//   An unload: what waits is refused, the load is given up, and what there is of it is taken out.
//   It fails: all that wait are refused with the reason, and what there is of it is taken out.
// It is there ("here"), `loaded` or, while a crashed engine is started again, `loading`.
//   A request uses it without a message. A load does nothing, unless it is forced or the engine is being started again: then it is taken out
//     and brought in anew.
//   It is retired, for having been idle or for another model's memory: it is taken out if nothing uses it; the next request loads it again.
//   It crashes more often than it may: it is given up (`failed`), and what is left of it is taken out.
// It is being taken out ("going"): its process ends, and its memory is looked for.
//   A load waits and follows. An unload or a retirement waits for the same end. Its process has not ended: that is a failure, and they
//     are told; a load starts a new process beside it.
import type { InsufficientMemory } from "#domain/wire/Errors.ts"
import type { HostEvent } from "../engine/HostOptions.ts"
import * as Limits from "../Limits.ts"

/** As callers and operators see it: the values of `loading_status` (docs/protocol/text.md). */
export type ModelStatus = "unloaded" | "loading" | "loaded" | "failed"

/** Numbers a load, an unload or a retirement that waits for its answer. */
export type Ask = number

/** What loading and unloading have cost, for operators; milliseconds of the last one. Undefined before the first. */
interface ModelTimings {
  readonly loadMs: number | undefined
  /** From the unload's beginning until the process and its memory were gone. */
  readonly unloadToFreedMs: number | undefined
  readonly freedBytes: number | undefined
  readonly loads: number
  readonly unloads: number
}

export interface ModelState {
  readonly engine: "none" | "coming" | "here" | "going"
  readonly status: ModelStatus
  /** An operator's unload stays in force until an operator's load. */
  readonly isHeld: boolean
  /** Loads that wait. `anew`: for an engine that is not yet being brought in. */
  readonly loads: ReadonlyArray<{ readonly ask: Ask; readonly anew: boolean }>
  /** Unloads and retirements that wait. */
  readonly leaves: ReadonlyArray<{ readonly ask: Ask; readonly why: LeaveReason }>
  /** Why it is `failed`, or why its last load was refused; for operators, never for callers. */
  readonly lastFailure: string
  readonly failedAtMs: number
  /** When the load or restart under way began. */
  readonly beganMs: number
  readonly timings: ModelTimings
}

/** `for`: the model that needs its memory. */
export type LeaveReason = "operator" | "idle" | { readonly for: string }

/** What an unload has done. */
export interface Unloaded {
  /** Whether an engine was in memory. */
  readonly was: boolean
  /** What its process held before; nothing of it is held after. */
  readonly freedBytes: number
  readonly tookMs: number
}

export type Event =
  /** A request that finds no engine, or an operator or the node itself. `force`: also where one is loaded. */
  | { readonly is: "load"; readonly ask: Ask; readonly by: "request" | "operator"; readonly force: boolean }
  | { readonly is: "unload"; readonly ask: Ask }
  | { readonly is: "retire"; readonly ask: Ask; readonly why: LeaveReason }
  /** Of the engine that is being brought in: its memory is claimed. */
  | { readonly is: "placed" }
  | { readonly is: "came" }
  | { readonly is: "did not come"; readonly because: NotLoaded }
  /** What was in memory has been taken out. `heldBytes`: what its process still holds, because it has not ended. */
  | ({ readonly is: "went"; readonly heldBytes: number } & Unloaded)
  | ({ readonly is: "engine" } & HostEvent)

/**
 * `again`: the next request may try at once, because finding the reason costs nothing. "abandoned": it was given up for an unload.
 */
export type NotLoaded =
  | InsufficientMemory
  | "abandoned"
  | { readonly reason: string; readonly again: boolean }

/** What an event is about that the state does not know. */
interface Facts {
  readonly nowMs: number
  /** Whether nothing uses or waits for the model, and it is neither pinned nor on its way out of the catalog. */
  readonly isUnused: boolean
}

export type Answer =
  | { readonly is: "loaded" }
  /** "unloaded": an operator's unload is in force, or came while it waited. */
  | { readonly is: "refused"; readonly because: "unloaded" | "unavailable" | InsufficientMemory }
  | ({ readonly is: "gone" } & Unloaded)
  | { readonly is: "stuck"; readonly heldBytes: number }
  | { readonly is: "in use" }

/** What operators are told. */
export type News =
  | { readonly of: "loading" }
  | { readonly of: "load failed"; readonly reason: string }
  | { readonly of: "refused"; readonly refusal: InsufficientMemory }
  | { readonly of: "ready"; readonly summary: string; readonly tookMs: number }
  | { readonly of: "restarting" | "crashed" | "hung" | "given up"; readonly detail: string }
  | {
      readonly of: "unloaded"
      readonly why: LeaveReason
      readonly freedBytes: number
      readonly tookMs: number
    }
  | { readonly of: "not unloaded"; readonly heldBytes: number }

export type Command =
  | { readonly do: "answer"; readonly ask: Ask; readonly answer: Answer }
  | { readonly do: "bring in" }
  /** Ends the load under way; "came" or "did not come" follows all the same. */
  | { readonly do: "abandon" }
  /** From now on no request reaches the engine; "went" follows. */
  | { readonly do: "take out" }
  /** Users who had requests in engines that crashed are served like all others again. */
  | { readonly do: "forget crashes" }
  | { readonly do: "report"; readonly news: News }
  | { readonly do: "record"; readonly loadMs: number }
  | { readonly do: "record"; readonly unloadToFreedMs: number }

const never = Number.NEGATIVE_INFINITY

/** `lack`: why it cannot be loaded, as far as that is known without trying. */
export const firstState = (isHeld: boolean, lack: string | undefined): ModelState => ({
  engine: "none",
  status: lack === undefined ? "unloaded" : "failed",
  isHeld,
  loads: [],
  leaves: [],
  lastFailure: lack ?? "",
  failedAtMs: never,
  beganMs: 0,
  timings: {
    loadMs: undefined,
    unloadToFreedMs: undefined,
    freedBytes: undefined,
    loads: 0,
    unloads: 0,
  },
})

/** When the actor has crashed or ended: what was in memory goes with it, and all that waited is refused. */
export const restarted = ({ isHeld, lastFailure, timings }: ModelState): ModelState => ({
  ...firstState(isHeld, undefined),
  lastFailure,
  timings,
})

/** Its actor has given up. */
export const lost = (state: ModelState, reason: string, nowMs: number): ModelState => ({
  ...restarted(state),
  status: "failed",
  lastFailure: reason,
  failedAtMs: nowMs,
})

/** How long a request may not try to load it again. */
export const reviveInMs = ({ failedAtMs, status }: ModelState, nowMs: number): number =>
  status === "failed" ? Math.max(0, failedAtMs + Limits.reviveAfterMs - nowMs) : 0

/** Why a request does not load it. */
export const refusalOf = (state: ModelState, nowMs: number): "unloaded" | "unavailable" | undefined => {
  if (state.isHeld) return "unloaded"
  return reviveInMs(state, nowMs) > 0 ? "unavailable" : undefined
}

/** One decision: the state as it becomes, and the commands in their order. */
class Decision {
  state: ModelState
  readonly commands: Array<Command> = []
  readonly #facts: Facts

  constructor(state: ModelState, facts: Facts) {
    this.state = state
    this.#facts = facts
  }

  event(event: Event): void {
    const { engine } = this.state
    switch (event.is) {
      case "load":
        return this.#load(event)
      case "unload":
        this.#become({ isHeld: true })
        this.#do({ do: "forget crashes" })
        this.#answerLoads({ is: "refused", because: "unloaded" }, "all")
        return this.#leave(event.ask, "operator")
      case "retire":
        if (engine !== "going" && !(this.#isLoaded && this.#facts.isUnused))
          return this.#answer(event.ask, { is: "in use" })
        return this.#leave(event.ask, event.why)
      case "placed":
        if (engine !== "coming") return
        this.#become({ status: "loading" })
        return this.#report({ of: "loading" })
      case "came":
        return this.#came()
      case "did not come":
        return this.#didNotCome(event.because)
      case "went":
        return this.#went(event)
      case "engine":
        // What an engine says while it is being taken out does not concern the one that follows it.
        if (engine === "coming" || engine === "here") this.#heard(event)
        return
    }
  }

  #become(changes: Partial<ModelState>): void {
    this.state = { ...this.state, ...changes }
  }

  #do(command: Command): void {
    this.commands.push(command)
  }

  #answer(ask: Ask, answer: Answer): void {
    this.#do({ do: "answer", ask, answer })
  }

  #report(news: News): void {
    this.#do({ do: "report", news })
  }

  get #isLoaded(): boolean {
    return this.state.engine === "here" && this.state.status === "loaded"
  }

  #load({ ask, by, force }: Event & { readonly is: "load" }): void {
    const because = by === "request" ? refusalOf(this.state, this.#facts.nowMs) : undefined
    if (because !== undefined) return this.#answer(ask, { is: "refused", because })
    if (by === "operator") this.#become({ isHeld: false })
    if (this.#isLoaded && !force) return this.#answer(ask, { is: "loaded" })
    this.#become({ loads: [...this.state.loads, { ask, anew: force }] })
    if (this.state.engine === "none") this.#bringIn()
    if (this.state.engine === "here") this.#takeOut()
  }

  #bringIn(): void {
    const loads = this.state.loads.map(({ ask }) => ({ ask, anew: false }))
    this.#become({ engine: "coming", status: "unloaded", loads, beganMs: this.#facts.nowMs })
    this.#do({ do: "bring in" })
  }

  #takeOut(): void {
    this.#become({ engine: "going" })
    this.#do({ do: "take out" })
  }

  /** An unload, or a retirement of an engine that nothing uses. */
  #leave(ask: Ask, why: LeaveReason): void {
    const { engine, leaves } = this.state
    if (engine === "none") {
      this.#become({ status: "unloaded" })
      return this.#answer(ask, { is: "gone", was: false, freedBytes: 0, tookMs: 0 })
    }
    this.#become({ leaves: [...leaves, { ask, why }] })
    if (engine === "coming" && leaves.length === 0) this.#do({ do: "abandon" })
    if (engine === "here") this.#takeOut()
  }

  /** Answers the loads that wait: all, or those that wait for the engine that was being brought in. */
  #answerLoads(answer: Answer, which: "all" | "present"): void {
    const { loads } = this.state
    const stay = which === "all" ? [] : loads.filter(({ anew }) => anew)
    this.#become({ loads: stay })
    for (const one of loads) if (!stay.includes(one)) this.#answer(one.ask, answer)
  }

  #came(): void {
    const { beganMs, leaves, status, timings } = this.state
    // It was given up, or unloaded, in the same moment: loads that wait now came after the unload.
    if (status === "failed") return this.#didNotCome({ reason: "", again: false })
    if (leaves.length > 0) return this.#takeOut()
    const loadMs = this.#facts.nowMs - beganMs
    this.#become({ engine: "here", timings: { ...timings, loadMs, loads: timings.loads + 1 } })
    this.#do({ do: "record", loadMs })
    this.#answerLoads({ is: "loaded" }, "present")
    if (this.state.loads.length > 0) this.#takeOut()
  }

  #didNotCome(because: NotLoaded): void {
    // After an unload it does not matter why, and loads that wait now came after it.
    if (because !== "abandoned" && this.state.leaves.length === 0) {
      const refusal = "reason" in because ? "unavailable" : because
      if ("reason" in because) this.#failedToLoad(because)
      else {
        this.#become({
          lastFailure: `${Math.ceil(because.wantedBytes / 1024 ** 2)} MB do not fit on ${because.device}`,
        })
        this.#report({ of: "refused", refusal: because })
      }
      this.#answerLoads({ is: "refused", because: refusal }, "present")
    }
    this.#takeOut()
  }

  #failedToLoad({ again, reason }: Extract<NotLoaded, { readonly again: boolean }>): void {
    const { lastFailure, status } = this.state
    // Its engine was given up, and has said why.
    if (status === "failed") return
    this.#fail(reason)
    if (again) this.#become({ failedAtMs: never })
    // Each request finds the same again; it is told once.
    if (!again || lastFailure !== reason) this.#report({ of: "load failed", reason })
  }

  #went({ freedBytes, heldBytes, tookMs, was }: Event & { readonly is: "went" }): void {
    const { leaves, loads, status, timings } = this.state
    this.#become({ engine: "none", leaves: [] })
    if (heldBytes > 0) {
      this.#fail(`its process has not ended: ${heldBytes} bytes are still held`)
      this.#report({ of: "not unloaded", heldBytes })
    } else {
      const isUnloaded = leaves.some(({ why }) => why === "operator")
      if (status !== "failed" || isUnloaded) this.#become({ status: "unloaded" })
      if (status !== "failed" && was) {
        this.#become({
          timings: { ...timings, unloadToFreedMs: tookMs, freedBytes, unloads: timings.unloads + 1 },
        })
        this.#do({ do: "record", unloadToFreedMs: tookMs })
      }
      const why = isUnloaded ? "operator" : leaves[0]?.why
      if (was && why !== undefined) this.#report({ of: "unloaded", why, freedBytes, tookMs })
    }
    for (const { ask } of leaves)
      this.#answer(ask, heldBytes > 0 ? { is: "stuck", heldBytes } : { is: "gone", was, freedBytes, tookMs })
    if (loads.length > 0) this.#bringIn()
  }

  #heard({ detail, event }: HostEvent): void {
    const { beganMs, engine, lastFailure } = this.state
    switch (event) {
      case "ready":
        this.#become({ status: "loaded", lastFailure: "" })
        return this.#report({ of: "ready", summary: detail, tookMs: this.#facts.nowMs - beganMs })
      case "crashed":
      case "hung":
        this.#become({ beganMs: this.#facts.nowMs, lastFailure: detail })
        return this.#report({ of: event, detail })
      case "restarting":
        this.#become({ status: "loading" })
        return this.#report({ of: "restarting", detail })
      case "gave-up": {
        const why = `${detail}; the last time: ${lastFailure}`
        this.#fail(why)
        this.#report({ of: "given up", detail: why })
        break
      }
      case "refused":
        this.#fail(detail)
        this.#report({ of: "load failed", reason: detail })
    }
    // One that is being brought in says so itself.
    if (engine === "here") this.#takeOut()
  }

  #fail(lastFailure: string): void {
    this.#become({ status: "failed", lastFailure, failedAtMs: this.#facts.nowMs })
  }
}

/** What is known after an event, and what follows. */
export const decide = (
  state: ModelState,
  event: Event,
  facts: Facts,
): readonly [ModelState, ReadonlyArray<Command>] => {
  const decision = new Decision(state, facts)
  decision.event(event)
  return [decision.state, decision.commands]
}

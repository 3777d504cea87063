// Random histories of one model: requests, operators' orders, retirements, engines that come, fail, crash, are given up, and do not end.
// What the test knows of the engine, of the orders and of each ask is kept apart from the state.
import fc from "fast-check"
import { expect, it } from "vitest"
import * as Limits from "#actors/Limits.ts"
import {
  type Answer,
  type Ask,
  type Command,
  decide,
  type Event,
  firstState,
  type LeaveReason,
  lost,
  type ModelState,
  type ModelStatus,
  type News,
  type NotLoaded,
  refusalOf,
  restarted,
  reviveInMs,
} from "#actors/model/ModelState.ts"
import { InsufficientMemory } from "#domain/wire/Errors.ts"

const mebibyte = 1024 ** 2
const tooMuch = new InsufficientMemory({
  model: "a",
  device: "the host",
  wantedBytes: 3.5 * mebibyte,
  freeBytes: mebibyte,
  retryAfterMs: 1,
})

/** What happens next. What a model is told of its engine depends on what it has made of it. */
type Step =
  | { readonly is: "load"; readonly by: "request" | "operator"; readonly force: boolean }
  | { readonly is: "unload" }
  | { readonly is: "retire"; readonly why: LeaveReason; readonly isUnused: boolean }
  /** The next thing that what is under way comes to. */
  | { readonly is: "goes on"; readonly end: NotLoaded | "came"; readonly isStuck: boolean }
  /** The engine crashes, and how often it may yet. */
  | {
      readonly is: "crashes"
      readonly follows: "restarting" | "gave-up" | "refused"
      readonly isHung: boolean
    }
  /** An engine that was started again is ready. */
  | { readonly is: "recovers" }
  | { readonly is: "waits"; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      is: fc.constant("load" as const),
      by: fc.constantFrom("request", "request", "operator"),
      force: fc.constantFrom(false, false, true),
    }),
  },
  { weight: 2, arbitrary: fc.record({ is: fc.constant("unload" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constant("retire" as const),
      why: fc.constantFrom<LeaveReason>("idle", { for: "b" }),
      isUnused: fc.constantFrom(true, true, false),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      is: fc.constant("goes on" as const),
      end: fc.constantFrom<NotLoaded | "came">(
        "came",
        "came",
        "came",
        tooMuch,
        { reason: "not there", again: true },
        { reason: "broken", again: false },
      ),
      isStuck: fc.constantFrom(false, false, false, false, true),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      is: fc.constant("crashes" as const),
      follows: fc.constantFrom("restarting", "restarting", "gave-up", "refused"),
      isHung: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ is: fc.constant("recovers" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ is: fc.constant("waits" as const), ms: fc.constantFrom(10, 29_000, 31_000) }),
  },
) as fc.Arbitrary<Step>

/** A load that waits, by what was under way when it was asked for. */
type Waiting =
  | { readonly is: "load"; readonly force: boolean; readonly askedAt: number }
  | { readonly is: "leave"; readonly why: LeaveReason }

/** How often each thing happened in all histories. */
const met = new Map<string, number>()
const meet = (what: string): void => void met.set(what, (met.get(what) ?? 0) + 1)

class World {
  state: ModelState
  nowMs = 1_000
  /** What is in memory, or on its way. `placed`: its memory is claimed; `sound`: it is ready and has not crashed since. */
  engine:
    | {
        phase: "coming" | "here" | "going"
        placed: boolean
        sound: boolean
        abandoned: boolean
        givenUp: boolean
      }
    | undefined
  isHeld = false
  /** Of the last attempt to have an engine, while no operator has unloaded it since. */
  failedAtMs: number | undefined
  hasFailed: boolean
  lastFailure: string
  beganMs = 0
  loads = 0
  unloads = 0
  /** Counts engines that were brought in. */
  brought = 0
  asks = 0
  readonly waiting = new Map<Ask, Waiting>()
  readonly answered = new Map<Ask, Answer>()

  constructor(isHeld: boolean, lack: string | undefined) {
    this.state = firstState(isHeld, lack)
    this.isHeld = isHeld
    this.hasFailed = lack !== undefined
    this.lastFailure = lack ?? ""
  }

  /** Hands one event over; the commands but for the reports, of which these are expected. */
  tell(event: Event, isUnused = false, reports: ReadonlyArray<News> = []): ReadonlyArray<Command> {
    const before = this.state.status
    const [state, commands] = decide(this.state, event, { nowMs: this.nowMs, isUnused })
    this.state = state
    expect(commands.flatMap((command) => (command.do === "report" ? [command.news] : []))).toEqual(reports)
    if (before !== state.status) meet(`${before} → ${state.status}`)
    for (const command of commands) this.#carriesOut(command, event)
    return commands
  }

  #carriesOut(command: Command, event: Event): void {
    switch (command.do) {
      case "bring in":
        expect(this.engine).toBeUndefined()
        this.engine = { phase: "coming", placed: false, sound: false, abandoned: false, givenUp: false }
        this.hasFailed = false
        this.failedAtMs = undefined
        this.beganMs = this.nowMs
        this.brought++
        return
      case "abandon":
        expect([event.is, this.engine?.phase, this.engine?.abandoned]).toEqual(["unload", "coming", false])
        this.engine!.abandoned = true
        return
      case "take out":
        expect(this.engine?.phase).toBe("here")
        this.engine!.phase = "going"
        return
      case "answer":
        expect(this.waiting.has(command.ask)).toBe(true)
        this.waiting.delete(command.ask)
        this.answered.set(command.ask, command.answer)
        return meet(
          `${command.answer.is}${"because" in command.answer ? ` ${typeof command.answer.because}` : ""}`,
        )
      case "forget crashes":
        return expect(event.is).toBe("unload")
      case "record":
        return meet("loadMs" in command ? "load recorded" : "unload recorded")
    }
  }

  load({ by, force }: Step & { readonly is: "load" }): void {
    const ask = ++this.asks
    const isThere = this.engine?.phase === "here"
    const wasSound = isThere && this.engine?.sound === true
    this.waiting.set(ask, { is: "load", force, askedAt: this.brought })
    const others = this.waiting.size
    const isRefused = by === "request" && (this.isHeld || this.#restMs() > 0)
    const commands = this.tell({ is: "load", ask, by, force })
    if (isRefused) {
      expect(this.answered.get(ask)).toEqual({
        is: "refused",
        because: this.isHeld ? "unloaded" : "unavailable",
      })
      return expect(commands.length).toBe(1)
    }
    if (by === "operator") this.isHeld = false
    if (wasSound && !force) return expect(this.answered.get(ask)).toEqual({ is: "loaded" })
    expect(this.waiting.size).toBe(others)
    // Something is under way for it.
    expect(this.engine?.phase).toBe(isThere ? "going" : this.engine!.phase)
    expect(this.engine?.phase).not.toBe("here")
  }

  /** How long a request may not load it. */
  #restMs(): number {
    return this.failedAtMs === undefined ? 0 : this.failedAtMs + Limits.reviveAfterMs - this.nowMs
  }

  unload(): void {
    const ask = ++this.asks
    const loads = [...this.waiting].filter(([, { is }]) => is === "load").map(([one]) => one)
    const wasThere = this.engine !== undefined
    const wasComing = this.engine?.phase === "coming" && !this.engine.abandoned
    this.waiting.set(ask, { is: "leave", why: "operator" })
    this.isHeld = true
    const commands = this.tell({ is: "unload", ask })
    expect(commands.some((command) => command.do === "forget crashes")).toBe(true)
    expect(commands.some((command) => command.do === "abandon")).toBe(wasComing)
    for (const one of loads) expect(this.answered.get(one)).toEqual({ is: "refused", because: "unloaded" })
    if (wasThere) return expect(this.engine?.phase).not.toBe("here")
    this.hasFailed = false
    this.failedAtMs = undefined
    expect(this.answered.get(ask)).toEqual({ is: "gone", was: false, freedBytes: 0, tookMs: 0 })
  }

  retire({ isUnused, why }: Step & { readonly is: "retire" }): void {
    const ask = ++this.asks
    const isGoing = this.engine?.phase === "going"
    const goes = this.engine?.phase === "here" && this.engine.sound && isUnused
    this.waiting.set(ask, { is: "leave", why })
    this.tell({ is: "retire", ask, why }, isUnused)
    if (goes) expect(this.engine?.phase).toBe("going")
    else if (!isGoing) expect(this.answered.get(ask)).toEqual({ is: "in use" })
    expect(this.waiting.has(ask)).toBe(goes || isGoing)
  }

  goesOn({ end, isStuck }: Step & { readonly is: "goes on" }): void {
    const { engine } = this
    if (engine === undefined || engine.phase === "here") return
    if (engine.phase === "going") return this.#goes(isStuck)
    // It may fail in the moment in which it is abandoned.
    if (engine.abandoned && end !== "came" && !isStuck) return this.#comes("abandoned")
    const isEarly = typeof end === "object" && ("wantedBytes" in end || end.again)
    if (engine.placed || isEarly) return this.#comes(isEarly && engine.placed ? "came" : end)
    engine.placed = true
    this.tell({ is: "placed" }, false, [{ of: "loading" }])
  }

  #comes(end: NotLoaded | "came"): void {
    const engine = this.engine!
    const askedFor = this.loadsAsked()
    const loads = [...this.waiting.values()].filter(({ is }) => is === "load")
    const isUnloaded = [...this.waiting.values()].some(({ is }) => is === "leave")
    engine.phase = "here"
    if (end === "came") {
      if (!engine.givenUp) this.ready()
      const commands = this.tell({ is: "came" })
      const isIn = !isUnloaded && !engine.givenUp
      if (isIn) {
        this.loads++
        expect(commands).toContainEqual({ do: "record", loadMs: this.nowMs - this.beganMs })
      }
      if (!isUnloaded)
        for (const ask of askedFor)
          expect(this.answered.get(ask)).toEqual(
            engine.givenUp ? { is: "refused", because: "unavailable" } : { is: "loaded" },
          )
      const isWanted = [...this.waiting.values()].some(({ is }) => is === "load")
      expect(isWanted).toBe(isUnloaded ? loads.length > 0 : loads.length > askedFor.length)
      return expect(this.engine!.phase).toBe(isIn && !isWanted ? "here" : "going")
    }
    const reports: Array<News> = []
    const counts = !isUnloaded && end !== "abandoned"
    if (counts && "reason" in end) {
      if (!engine.givenUp) {
        if (!end.again || this.lastFailure !== end.reason)
          reports.push({ of: "load failed", reason: end.reason })
        this.fails(end.reason, end.again)
      }
    } else if (counts) {
      reports.push({ of: "refused", refusal: end as InsufficientMemory })
      this.lastFailure = "4 MB do not fit on the host"
    }
    this.tell({ is: "did not come", because: end }, false, reports)
    const because = typeof end === "object" && !("reason" in end) ? end : "unavailable"
    if (!isUnloaded)
      for (const ask of askedFor) expect(this.answered.get(ask)).toEqual({ is: "refused", because })
    expect(this.engine!.phase).toBe("going")
  }

  /** Loads that wait for the engine that is being brought in. */
  loadsAsked(): ReadonlyArray<Ask> {
    return [...this.waiting].flatMap(([ask, one]) =>
      one.is === "load" && (!one.force || one.askedAt < this.brought) ? [ask] : [],
    )
  }

  fails(reason: string, again = false): void {
    this.hasFailed = true
    this.failedAtMs = again ? undefined : this.nowMs
    this.lastFailure = reason
  }

  #goes(isStuck: boolean): void {
    const leaves = [...this.waiting].flatMap(([ask, one]) => (one.is === "leave" ? [{ ask, ...one }] : []))
    const isUnloaded = leaves.some(({ why }) => why === "operator")
    const isWanted = [...this.waiting.values()].some(({ is }) => is === "load")
    const was = this.engine!.placed
    const freedBytes = was ? 7 : 0
    const heldBytes = isStuck && was ? 5 : 0
    const why = isUnloaded ? "operator" : leaves[0]?.why
    const reports: Array<News> = []
    const isClean = was && !this.hasFailed && heldBytes === 0
    if (heldBytes > 0) {
      reports.push({ of: "not unloaded", heldBytes })
      this.fails(`its process has not ended: ${heldBytes} bytes are still held`)
    } else {
      if (isUnloaded) {
        this.hasFailed = false
        this.failedAtMs = undefined
      }
      if (isClean) this.unloads++
      if (was && why !== undefined) reports.push({ of: "unloaded", why, freedBytes, tookMs: 3 })
    }
    this.engine = undefined
    const commands = this.tell({ is: "went", was, freedBytes, tookMs: 3, heldBytes }, false, reports)
    expect(commands.some((command) => command.do === "record")).toBe(isClean)
    for (const { ask } of leaves)
      expect(this.answered.get(ask)).toEqual(
        heldBytes > 0 ? { is: "stuck", heldBytes } : { is: "gone", was, freedBytes, tookMs: 3 },
      )
    expect((this.engine as World["engine"])?.phase).toBe(isWanted ? "coming" : undefined)
  }

  ready(): void {
    this.engine!.sound = true
    this.lastFailure = ""
    this.tell({ is: "engine", event: "ready", detail: "8 slots" }, false, [
      { of: "ready", summary: "8 slots", tookMs: this.nowMs - this.beganMs },
    ])
  }

  crashes({ isHung, follows }: Step & { readonly is: "crashes" }): void {
    const { engine } = this
    const event = isHung ? "hung" : "crashed"
    if (engine?.phase === "going" || engine === undefined) {
      // A late word of an engine that is being ended changes nothing.
      if (engine !== undefined)
        expect(this.tell({ is: "engine", event: follows, detail: "late" })).toEqual([])
      return
    }
    if (!engine.placed || engine.givenUp) return
    if (follows !== "refused") {
      this.beganMs = this.nowMs
      this.lastFailure = "signal"
      this.tell({ is: "engine", event, detail: "signal" }, false, [{ of: event, detail: "signal" }])
    }
    engine.sound = false
    const reason = follows === "gave-up" ? "4 times; the last time: signal" : "bad weights"
    if (follows === "restarting")
      return void this.tell({ is: "engine", event: follows, detail: "1 of 3" }, false, [
        { of: "restarting", detail: "1 of 3" },
      ])
    engine.givenUp = true
    this.fails(reason)
    this.tell({ is: "engine", event: follows, detail: follows === "gave-up" ? "4 times" : reason }, false, [
      follows === "gave-up" ? { of: "given up", detail: reason } : { of: "load failed", reason },
    ])
    expect(this.engine?.phase).toBe(engine.phase === "coming" ? "coming" : "going")
  }

  take(one: Step): void {
    this.nowMs += one.is === "waits" ? one.ms : 1
    if (one.is === "load") this.load(one)
    if (one.is === "unload") this.unload()
    if (one.is === "retire") this.retire(one)
    if (one.is === "goes on") this.goesOn(one)
    if (one.is === "crashes") this.crashes(one)
    if (one.is === "recovers" && this.engine?.phase === "here" && !this.engine.sound && !this.engine.givenUp)
      this.ready()
    this.check()
  }

  /** What holds at all times. */
  check(): void {
    const { engine, state } = this
    expect(state.engine).toBe(engine?.phase ?? "none")
    expect(state.status).toBe(this.status())
    expect(state.isHeld).toBe(this.isHeld)
    expect(state.lastFailure).toBe(this.lastFailure)
    expect([state.timings.loads, state.timings.unloads]).toEqual([this.loads, this.unloads])
    expect([...state.loads, ...state.leaves].map(({ ask }) => ask).sort()).toEqual(
      [...this.waiting.keys()].sort(),
    )
    expect(reviveInMs(state, this.nowMs)).toBe(Math.max(0, this.#restMs()))
    const refusal = this.isHeld ? "unloaded" : this.#restMs() > 0 ? "unavailable" : undefined
    expect(refusalOf(state, this.nowMs)).toBe(refusal)
  }

  status(): ModelStatus {
    if (this.hasFailed) return "failed"
    if (this.engine === undefined || !this.engine.placed) return "unloaded"
    return this.engine.sound ? "loaded" : "loading"
  }
}

it("takes out before it brings in, answers each ask once and truly, and shows what there is", () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.option(fc.constant("is too large"), { nil: undefined }),
      fc.array(step, { minLength: 5, maxLength: 60, size: "max" }),
      (isHeld, lack, steps) => {
        const world = new World(isHeld, lack)
        for (const one of steps) world.take(one)
        // Nothing more is asked for: what is under way ends, and then all have their answers.
        for (let n = 0; world.engine !== undefined && world.engine.phase !== "here"; n++) {
          expect(n).toBeLessThan(10)
          world.take({ is: "goes on", end: "came", isStuck: false })
        }
        expect([...world.waiting.keys()]).toEqual([])
        expect(world.answered.size).toBe(world.asks)
        const after = restarted(world.state)
        expect(after).toEqual({
          ...firstState(world.isHeld, undefined),
          lastFailure: world.lastFailure,
          timings: world.state.timings,
        })
        expect(lost(world.state, "gone", 5)).toMatchObject({
          engine: "none",
          status: "failed",
          lastFailure: "gone",
          failedAtMs: 5,
          isHeld: world.isHeld,
        })
      },
    ),
    { numRuns: 400 },
  )
  const ways = [
    "unloaded → loading",
    "loading → loaded",
    "loaded → loading",
    "loaded → unloaded",
    "loading → unloaded",
    "unloaded → failed",
    "loading → failed",
    "loaded → failed",
    "failed → unloaded",
  ]
  const answers = ["loaded", "refused string", "refused object", "gone", "stuck", "in use"]
  expect([...ways, ...answers].filter((what) => (met.get(what) ?? 0) < 5)).toEqual([])
})

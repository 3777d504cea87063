// One device as an actor. It answers claims one message at a time, so two models are never promised the same bytes. What it decides is in
// DeviceState; here its commands are carried out: each is an answer to a claim.
import { Cause, Effect, Queue, Schema, type Scope } from "effect"
import { Message, spawn } from "../Actor.ts"
import * as Specifications from "../Specifications.ts"
import type { Details } from "../TreeNode.ts"
import { type Answer, type ClaimId, type DeviceEvent, type DeviceState, decide } from "./DeviceState.ts"

/** The memory is not there. */
export class DeviceExhausted extends Schema.TaggedError<DeviceExhausted>()("DeviceExhausted", {
  deviceId: Schema.String,
  deviceName: Schema.String,
  wantedBytes: Schema.Finite,
  freeBytes: Schema.Finite,
}) {}

/** The device's actor has crashed at this claim or given up, or its node ends. */
export class DeviceLost extends Schema.TaggedError<DeviceLost>()("DeviceLost", {
  deviceName: Schema.String,
}) {}

class Happened extends Message<void> {
  readonly _tag = "Happened"
  readonly event: DeviceEvent
  constructor(event: DeviceEvent) {
    super()
    this.event = event
  }
}

/** Messages of all models at a time. A guess: each has one or two under way, and each is handled within microseconds. */
const mailbox = 1_024

/** Unloads models of the device until a claim fits; false where that is not possible or not allowed. */
export type Free = (exhausted: DeviceExhausted) => Effect.Effect<boolean>

export interface DeviceActor {
  readonly id: string
  readonly name: string
  readonly state: () => DeviceState
  /** Whether it has given up. */
  readonly isLost: () => boolean
  /** Claims bytes under a new id. Where they are not there, memory is freed for them at most `rounds` times. */
  readonly claim: (
    id: ClaimId,
    bytes: number,
    rounds: number,
    free: Free,
  ) => Effect.Effect<void, DeviceExhausted | DeviceLost>
  /** Tells it of an event, and waits until it is handled. Does nothing once the device is lost. */
  readonly tell: (event: DeviceEvent) => Effect.Effect<void>
}

interface DeviceActorOptions {
  readonly id: string
  /** For operators. */
  readonly name: string
  readonly initial: DeviceState
  readonly holds: NonNullable<Details["holds"]>
}

export const makeDeviceActor = ({
  holds,
  id,
  initial,
  name,
}: DeviceActorOptions): Effect.Effect<DeviceActor, never, Scope.Scope> =>
  Effect.gen(function* () {
    /** Where the answers to the claims under way go. A claim has one that it has not read at most, and then its end. */
    const answers = new Map<ClaimId, Queue.Queue<Answer>>()
    const ref = yield* spawn<DeviceState, Happened>({
      name,
      terms: Specifications.device,
      capacity: mailbox,
      // Models keep what they were promised when the actor is restarted.
      initial: (before) => Effect.succeed(before ?? initial),
      handle: {
        Happened: (before, { event }) =>
          Effect.sync(() => {
            const [state, commands] = decide(before, event)
            for (const { answer, to } of commands) {
              const waiting = answers.get(to)
              if (waiting !== undefined) Queue.offerUnsafe(waiting, answer)
            }
            return { state, reply: undefined }
          }),
      },
      details: { holds },
    })
    const lost = new DeviceLost({ deviceName: name })
    // Waits for room in the mailbox: memory that is not given back would be lost for as long as the node runs.
    const tell = (event: DeviceEvent): Effect.Effect<void> =>
      // A crash of the actor is reported where it is restarted.
      Effect.asVoid(Effect.exit(ref.deliver(new Happened(event))))

    const claim: DeviceActor["claim"] = (claimId, bytes, rounds, free) =>
      Effect.gen(function* () {
        const mine = yield* Queue.bounded<Answer>(2)
        answers.set(claimId, mine)
        const gone = Effect.andThen(ref.ended, Effect.fail(lost))
        let event: DeviceEvent = { is: "claimed", id: claimId, bytes, rounds }
        for (;;) {
          yield* Effect.catchCause(ref.deliver(new Happened(event)), (cause) =>
            Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(lost),
          )
          const answer: Answer = yield* Effect.raceFirst(Queue.take(mine), gone)
          if (answer.is === "granted") return
          const exhausted = new DeviceExhausted({
            deviceId: id,
            deviceName: name,
            wantedBytes: bytes,
            freeBytes: answer.freeBytes,
          })
          if (answer.is === "refused") return yield* exhausted
          event = { is: "evicted", id: claimId, freed: yield* free(exhausted) }
        }
      }).pipe(Effect.ensuring(Effect.sync(() => answers.delete(claimId))))

    return {
      id,
      name,
      state: () => ref.state() ?? initial,
      isLost: () => ref.node.state === "gave up",
      claim,
      tell,
    }
  })

// One device as an actor: the host processor or a GPU. It keeps the books of its memory and answers claims one at a time, so two
// models are never promised the same bytes.
import { Effect, Schema, type Scope } from "effect"
import { type ActorRef, Message, spawn } from "../Actor.ts"
import * as Specifications from "../Specifications.ts"
import type { Details } from "../TreeNode.ts"

export class DeviceExhausted extends Schema.TaggedError<DeviceExhausted>()("DeviceExhausted", {
  deviceId: Schema.String,
  deviceName: Schema.String,
  wantedBytes: Schema.Finite,
  freeBytes: Schema.Finite,
}) {}

/** What one model was promised of one device. */
export interface Share {
  readonly bytes: number
  /** False until the model has loaded, so until the driver's own reading counts it. */
  readonly settled: boolean
}

/** Promises by holder. */
export type Shares = ReadonlyMap<object, Share>

export const promisedOf = (shares: Shares): number =>
  [...shares.values()].reduce((sum, { bytes }) => sum + bytes, 0)

export const unsettledOf = (shares: Shares): number =>
  [...shares.values()].reduce((sum, { bytes, settled }) => (settled ? sum : sum + bytes), 0)

/** Promises bytes to a holder, or says that they are not there. */
export class ClaimShare extends Message<void, DeviceExhausted> {
  readonly _tag = "ClaimShare"
  readonly holder: object
  readonly bytes: number
  /** Bytes that nothing uses, given what is promised. */
  readonly free: (shares: Shares) => number
  constructor(holder: object, bytes: number, free: (shares: Shares) => number) {
    super()
    this.holder = holder
    this.bytes = bytes
    this.free = free
  }
}

/** After loading: the measured bytes replace the promised ones where they are more. */
export class SettleShare extends Message<void> {
  readonly _tag = "SettleShare"
  readonly holder: object
  readonly bytes: number
  constructor(holder: object, bytes: number) {
    super()
    this.holder = holder
    this.bytes = bytes
  }
}

/** Gives a promise back. */
export class ReleaseShare extends Message<void> {
  readonly _tag = "ReleaseShare"
  readonly holder: object
  constructor(holder: object) {
    super()
    this.holder = holder
  }
}

type LedgerMessage = ClaimShare | ReleaseShare | SettleShare

/** Messages of all models at a time; each has one under way at most. */
const mailbox = 1_024

/** Between two attempts of a message that found the mailbox full. A guess. */
const retryMs = 10

export interface DeviceLedger {
  readonly id: string
  readonly shares: () => Shares
  readonly claim: (message: ClaimShare) => Effect.Effect<void, DeviceExhausted>
  /** Never refused: memory that is not given back would be lost for as long as the node runs. */
  readonly tell: (message: ReleaseShare | SettleShare) => Effect.Effect<void>
}

export interface LedgerOptions {
  readonly id: string
  /** For operators. */
  readonly name: string
  readonly holds: NonNullable<Details["holds"]>
}

export const makeLedger = ({
  id,
  holds,
  name,
}: LedgerOptions): Effect.Effect<DeviceLedger, never, Scope.Scope> =>
  Effect.gen(function* () {
    // Outside of the incarnation: the models keep what they were promised when the actor is restarted.
    let books: Shares = new Map()
    const change = (edit: (shares: Map<object, Share>) => void) =>
      Effect.sync(() => {
        const shares = new Map(books)
        edit(shares)
        books = shares
        return { state: books, reply: undefined }
      })
    const exhausted = (wantedBytes: number, freeBytes: number) =>
      new DeviceExhausted({ deviceId: id, deviceName: name, wantedBytes, freeBytes })
    const ref: ActorRef<Shares, LedgerMessage> = yield* spawn<Shares, LedgerMessage>({
      name,
      terms: Specifications.device,
      capacity: mailbox,
      initial: Effect.sync(() => books),
      handle: {
        ClaimShare: (shares, { bytes, free, holder }) =>
          Effect.suspend(() => {
            const freeBytes = free(shares)
            return bytes > freeBytes
              ? Effect.fail(exhausted(bytes, freeBytes))
              : change((next) => next.set(holder, { bytes, settled: false }))
          }),
        SettleShare: (_shares, { bytes, holder }) =>
          change((next) => {
            const share = next.get(holder)
            if (share !== undefined) next.set(holder, { bytes: Math.max(share.bytes, bytes), settled: true })
          }),
        ReleaseShare: (_shares, { holder }) => change((next) => next.delete(holder)),
      },
      details: { holds },
    })
    const tell = (message: ReleaseShare | SettleShare): Effect.Effect<void> =>
      Effect.catch(ref.ask(message), (error) =>
        error._tag === "MailboxFull"
          ? Effect.andThen(Effect.sleep(retryMs), tell(message))
          : // Given up, or the node ends: nothing is claimed of it any more.
            Effect.void,
      )
    return {
      id,
      shares: () => books,
      claim: (message) =>
        Effect.mapError(ref.ask(message), (error) =>
          error._tag === "DeviceExhausted" ? error : exhausted(message.bytes, 0),
        ),
      tell,
    }
  })

// What one device knows, the host processor or a GPU, and what it decides of each message: its claims, those that wait for memory, its
// reading of the driver, its memory pressure. Pure. DeviceActor carries the commands out.
import { type MemoryLevel, nextLevel } from "#domain/models/MemoryLevel.ts"
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"

/** Numbered by the node; never used again. */
export type ClaimId = number

/** What one model was promised. */
interface Promised {
  readonly bytes: number
  /** False until the model has loaded, so until the driver's own reading counts it. */
  readonly settled: boolean
}

/** A claim that did not fit, while memory is being freed for it. */
interface Waiting {
  readonly id: ClaimId
  readonly bytes: number
  /** How often memory may still be freed for it: another claim may get it first. */
  readonly rounds: number
}

/** A row of `nvidia-smi`, and when the program was started that printed it, milliseconds of the monotonic clock. */
interface Reading {
  readonly gpu: NvidiaGpu
  readonly atMs: number
}

export interface DeviceState {
  /** Bytes that may be claimed of the host; undefined for a GPU, where it follows from the reading. */
  readonly hostBytes: number | undefined
  readonly claims: ReadonlyMap<ClaimId, Promised>
  /** In the order of their arrival. */
  readonly waiting: ReadonlyArray<Waiting>
  /** The newest one that makes sense; undefined for the host, and for a GPU that the driver no longer shows. */
  readonly reading: Reading | undefined
  /** When the newest reading was made, also one in which the GPU was missing. */
  readonly readAtMs: number
  readonly pressure: MemoryLevel
  /** Share of the memory budget that was last seen in use. */
  readonly usedShare: number
}

export const hostState = (hostBytes: number): DeviceState => ({
  hostBytes,
  claims: new Map(),
  waiting: [],
  reading: undefined,
  readAtMs: Number.NEGATIVE_INFINITY,
  pressure: "calm",
  usedShare: 0,
})

export const gpuState: DeviceState = { ...hostState(0), hostBytes: undefined }

/** Messages as data. */
export type DeviceEvent =
  /** A model wants memory. `rounds`: how often memory may be freed for it; 0 to be refused at once. */
  | { readonly is: "claimed"; readonly id: ClaimId; readonly bytes: number; readonly rounds: number }
  /** What a `free` command led to; `freed` is false where nothing can be freed. */
  | { readonly is: "evicted"; readonly id: ClaimId; readonly freed: boolean }
  /** The model has loaded: the measured bytes count where they are more than the promised ones. */
  | { readonly is: "settled"; readonly id: ClaimId; readonly bytes: number }
  /** The claim ends, also one that still waits. */
  | { readonly is: "released"; readonly id: ClaimId }
  /** The driver was asked; `gpu` is undefined where it no longer shows this one. */
  | { readonly is: "read"; readonly gpu: NvidiaGpu | undefined; readonly atMs: number }
  /** The share of the host's memory budget that the node uses. */
  | { readonly is: "used"; readonly share: number }

/** The answers to a claim. After `free` another one follows. */
export type Answer =
  | { readonly is: "granted" }
  | { readonly is: "refused"; readonly freeBytes: number }
  /** Free at least so much, by unloading models, and report `evicted`. */
  | { readonly is: "free"; readonly freeBytes: number }

interface Command {
  readonly to: ClaimId
  readonly answer: Answer
}

/** Share of a GPU's memory that models may claim: the driver and the display need some. A guess. */
export const gpuShare = 0.95

export const promisedOf = ({ claims }: Pick<DeviceState, "claims">): number => {
  let sum = 0
  for (const { bytes } of claims.values()) sum += bytes
  return sum
}

const unsettledOf = ({ claims }: DeviceState): number => {
  let sum = 0
  for (const { bytes, settled } of claims.values()) if (!settled) sum += bytes
  return sum
}

/**
 * Bytes that may still be claimed; negative where models use more than they claimed. Others may use a GPU as well: neither the claims nor
 * the driver's reading alone tells what is free.
 */
export const freeOf = (state: DeviceState): number => {
  const { hostBytes, reading } = state
  if (hostBytes !== undefined) return hostBytes - promisedOf(state)
  if (reading === undefined) return 0
  const { freeBytes, totalBytes } = reading.gpu
  return Math.min(Math.floor(totalBytes * gpuShare) - promisedOf(state), freeBytes - unsettledOf(state))
}

const granted: Answer = { is: "granted" }

const withClaim = (state: DeviceState, id: ClaimId, promised: Promised): DeviceState => ({
  ...state,
  claims: new Map(state.claims).set(id, promised),
})

/** Memory may have become free: those that wait get it in their order. One that still does not fit lets the next ones pass. */
const serve = (before: DeviceState): readonly [DeviceState, ReadonlyArray<Command>] => {
  if (before.waiting.length === 0) return [before, []]
  let state = before
  const commands: Array<Command> = []
  const waiting: Array<Waiting> = []
  for (const one of before.waiting)
    if (one.bytes <= freeOf(state)) {
      state = withClaim(state, one.id, { bytes: one.bytes, settled: false })
      commands.push({ to: one.id, answer: granted })
    } else waiting.push(one)
  return [{ ...state, waiting }, commands]
}

const unchanged = (state: DeviceState): readonly [DeviceState, ReadonlyArray<Command>] => [state, []]

/** False for NaN. */
const isAmount = (value: number): boolean => value >= 0 && value < Number.POSITIVE_INFINITY

const makesSense = ({ freeBytes, totalBytes }: NvidiaGpu): boolean =>
  isAmount(totalBytes) && isAmount(freeBytes) && freeBytes <= totalBytes

/** What is known after an event, and what follows. Events of a claim that has ended, or is not known, change nothing. */
export const decide = (
  state: DeviceState,
  event: DeviceEvent,
): readonly [DeviceState, ReadonlyArray<Command>] => {
  switch (event.is) {
    case "claimed": {
      const { bytes, id, rounds } = event
      const freeBytes = freeOf(state)
      if (state.claims.has(id) || state.waiting.some((one) => one.id === id)) return unchanged(state)
      // One that fits does not wait behind those that do not: they may wait for minutes.
      if (isAmount(bytes) && bytes <= freeBytes)
        return [withClaim(state, id, { bytes, settled: false }), [{ to: id, answer: granted }]]
      if (!isAmount(bytes) || rounds <= 0) return [state, [{ to: id, answer: { is: "refused", freeBytes } }]]
      const waiting = [...state.waiting, { id, bytes, rounds: rounds - 1 }]
      return [{ ...state, waiting }, [{ to: id, answer: { is: "free", freeBytes } }]]
    }
    case "evicted": {
      const { freed, id } = event
      const one = state.waiting.find((waiting) => waiting.id === id)
      // It was granted meanwhile.
      if (one === undefined) return unchanged(state)
      const freeBytes = freeOf(state)
      if (freed && one.rounds > 0) {
        const waiting = state.waiting.map((each) =>
          each === one ? { ...one, rounds: one.rounds - 1 } : each,
        )
        return [{ ...state, waiting }, [{ to: id, answer: { is: "free", freeBytes } }]]
      }
      const waiting = state.waiting.filter((each) => each !== one)
      return [{ ...state, waiting }, [{ to: id, answer: { is: "refused", freeBytes } }]]
    }
    case "settled": {
      const promised = state.claims.get(event.id)
      if (promised === undefined) return unchanged(state)
      const bytes = isAmount(event.bytes) ? Math.max(promised.bytes, event.bytes) : promised.bytes
      // The driver's reading counts it from now on: on a GPU that others use too, there may be more for those that wait.
      return serve(withClaim(state, event.id, { bytes, settled: true }))
    }
    case "released": {
      const claims = new Map(state.claims)
      claims.delete(event.id)
      return serve({ ...state, claims, waiting: state.waiting.filter(({ id }) => id !== event.id) })
    }
    case "read": {
      const { atMs, gpu } = event
      if (!Number.isFinite(atMs) || atMs < state.readAtMs) return unchanged(state)
      if (gpu !== undefined && !makesSense(gpu)) return unchanged(state)
      return serve({ ...state, reading: gpu && { gpu, atMs }, readAtMs: atMs })
    }
    case "used": {
      const { share } = event
      if (!isAmount(share)) return unchanged(state)
      return [{ ...state, usedShare: share, pressure: nextLevel(state.pressure, share) }, []]
    }
  }
}

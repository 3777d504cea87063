// Pulls one hub file into the weights directory: under a lock, resumed where it stopped, with a bounded number of
// attempts. The file gets its final name only after its sum was checked.
import { Effect, Random } from "effect"
import type { HubFile } from "#domain/models/HubFile.ts"
import { problemOf } from "#store/files/DataDir.ts"
import { fileLock } from "#store/files/FileLock.ts"
import { Download, type PullSettings, type PullWatcher } from "./Download.ts"
import { Refusal, silenceMs, Transient } from "./HubClient.ts"
import { CannotKeep, HubRefused, HubUnreachable, PullCorrupt, type PullError } from "./PullErrors.ts"
import { pulled } from "./Weights.ts"

/** Guesses: the attempts outlast a minute's outage; a longer one is reported. */
export const pullDefaults = { attempts: 6, backoffMs: [1_000, 30_000] as const, silenceMs }

export interface Pulled {
  readonly path: string
  readonly sizeBytes: number
  readonly sha256: string
  /** False if the file was already there. */
  readonly fetched: boolean
  /** Bytes received by this call. */
  readonly receivedBytes: number
  /** Where the expected sum came from. Undefined if neither the catalog nor the hub declares one. */
  readonly checkedBy: "catalog" | "hub" | undefined
}

/** Bytes of progress that reset the count of attempts. Less could be a host that sends a little and hangs up. */
const progressBytes = 1024 * 1024
const isPullError = (cause: unknown): cause is PullError =>
  cause instanceof PullCorrupt || cause instanceof CannotKeep

const pullError = (source: string, cause: unknown): PullError | Transient => {
  if (cause instanceof Transient || isPullError(cause)) return cause
  if (!(cause instanceof Refusal)) return new CannotKeep({ source, problem: problemOf(cause) })
  const { host, message, status, withToken } = cause
  return message === ""
    ? new HubRefused({ source, host, status, withToken })
    : new PullCorrupt({ source, problem: `${host} ${message}` })
}

/** Tries until the file is complete, a refusal is final, or too many consecutive attempts made no progress. */
const attempts = Effect.fnUntraced(function* (pull: Download, settings: PullSettings, watcher: PullWatcher) {
  const [base, cap] = settings.backoffMs
  let failures = 0
  let countedBytes = 0
  let running: Promise<unknown> = Promise.resolve()
  for (;;) {
    const result = yield* Effect.tryPromise({
      try: (signal) => {
        const attempt = pull.attempt(signal)
        running = attempt
        return attempt
      },
      catch: (cause) => pullError(pull.source, cause),
    }).pipe(
      // The lock is kept until the last write has ended.
      Effect.onInterrupt(() =>
        Effect.promise(() =>
          running.then(
            () => {},
            () => {},
          ),
        ),
      ),
      Effect.catchIf((error) => error instanceof Transient, Effect.succeed),
    )
    if (!(result instanceof Transient)) return result
    if (pull.receivedBytes - countedBytes >= progressBytes) failures = 0
    countedBytes = pull.receivedBytes
    failures++
    const { host, message: problem, retryAfterMs } = result
    if (failures >= settings.attempts) {
      return yield* new HubUnreachable({ source: pull.source, host, problem, attempts: failures })
    }
    watcher.retrying(`${host}: ${problem}`, failures + 1)
    const step = Math.min(cap, base * 2 ** (failures - 1))
    yield* Effect.sleep(retryAfterMs ?? step * (0.5 + (yield* Random.next) / 2))
  }
})

/** What the catalog says about a file. */
export interface ExpectedFile {
  readonly sha256?: string | undefined
  readonly sizeBytes?: number | undefined
}

/** Pulls one file; safe while other processes pull it too. */
export const pullFile = (
  file: HubFile,
  { sha256, sizeBytes: expectedBytes }: ExpectedFile,
  settings: PullSettings,
  watcher: PullWatcher,
): Effect.Effect<Pulled, PullError> =>
  Effect.gen(function* () {
    const pull = new Download(file, settings, watcher, expectedBytes)
    const { path, source } = pull
    const onDisk = <A>(work: () => Promise<A>) =>
      Effect.tryPromise({
        try: work,
        catch: (cause) => new CannotKeep({ source, problem: problemOf(cause) }),
      })
    yield* onDisk(() => pull.makeFolders())
    yield* Effect.mapError(
      fileLock(pull.lock, watcher.waiting),
      (cause) => new CannotKeep({ source, problem: problemOf(cause) }),
    )
    const known = yield* onDisk(() => pulled(settings.dir, file))
    if (known !== undefined && (sha256 === undefined || known.sha256 === sha256)) {
      const checkedBy = sha256 === undefined ? undefined : ("catalog" as const)
      const { sha256: sum, sizeBytes } = known
      return { path, sizeBytes, sha256: sum, fetched: false, receivedBytes: 0, checkedBy }
    }
    const came = yield* attempts(pull, settings, watcher).pipe(
      Effect.tapErrorTag("PullCorrupt", () => onDisk(() => pull.discard())),
    )
    const expected = sha256 ?? came.linkedSha256
    if (expected !== undefined && came.sha256 !== expected) {
      yield* onDisk(() => pull.discard())
      const who = sha256 === undefined ? "the hub" : "the catalog"
      return yield* pull.corrupt(
        `has SHA-256 ${came.sha256}, ${who} says ${expected}; the received file is deleted, pull again or set HF_ENDPOINT to another hub`,
      )
    }
    yield* onDisk(() => pull.keep(came))
    const checkedBy: Pulled["checkedBy"] =
      sha256 !== undefined ? "catalog" : came.linkedSha256 !== undefined ? "hub" : undefined
    return {
      path,
      sizeBytes: came.sizeBytes,
      sha256: came.sha256,
      fetched: true,
      receivedBytes: pull.receivedBytes,
      checkedBy,
    }
  }).pipe(Effect.scoped)

// Which regions answer: polls each edge's /health and remembers what it said. Called by the router for every choice;
// off unless an operator asks for it, and then every region counts as healthy.
import { Context, Effect, Layer, Random } from "effect"

export interface Watched {
  readonly code: string
  /** Base address of its edge. */
  readonly endpoint: string
}

/** Whether an edge says that it can serve. Completes within a bounded time, and never fails. */
export type Probe = (region: Watched) => Effect.Effect<boolean>

export interface Watch {
  readonly regions: ReadonlyArray<Watched>
  readonly everyMs: number
  readonly probe?: Probe
}

/** Probes in flight at once: a file of a thousand regions must not open a thousand connections. A guess. */
const atOnce = 8
/** Each round is longer or shorter by up to this part, so that several routers do not march in step. */
const jitter = 0.2

/** Two seconds, or less where rounds are shorter: a region that answers later would serve nobody well. */
const timeoutMs = (everyMs: number): number => Math.min(2_000, everyMs)

/** 200 is healthy or degraded, which still serves; an edge that is unhealthy or draining says 503. */
export const httpProbe =
  (everyMs: number): Probe =>
  ({ endpoint }) =>
    Effect.tryPromise(async (interrupted) => {
      const signal = AbortSignal.any([interrupted, AbortSignal.timeout(timeoutMs(everyMs))])
      const response = await fetch(`${endpoint}/health`, { signal, redirect: "error" })
      await response.body?.cancel()
      return response.status === 200
    }).pipe(Effect.orElseSucceed(() => false))

export class RegionHealth extends Context.Service<
  RegionHealth,
  { readonly isHealthy: (code: string) => boolean }
>()("edgewise/api/RegionHealth") {
  static readonly unwatched = Layer.succeed(RegionHealth, { isHealthy: () => true })

  /** Until the first answer a region counts as healthy; from then on its last answer decides. */
  static readonly watched = (watch: Watch): Layer.Layer<RegionHealth> =>
    Layer.effect(
      RegionHealth,
      Effect.suspend(() => make(watch)),
    )
}

const make = Effect.fnUntraced(function* ({ everyMs, regions, probe = httpProbe(everyMs) }: Watch) {
  const sick = new Set<string>()

  const look = Effect.fnUntraced(function* (region: Watched) {
    const healthy = yield* probe(region)
    if (healthy !== sick.has(region.code)) return
    if (healthy) sick.delete(region.code)
    else sick.add(region.code)
    const change = healthy ? "region is healthy again" : "region is unhealthy"
    yield* Effect.annotateLogs(healthy ? Effect.logInfo(change) : Effect.logWarning(change), {
      region: region.code,
    })
  })

  const round = Effect.gen(function* () {
    yield* Effect.forEach(regions, look, { concurrency: atOnce, discard: true })
    yield* Effect.sleep(everyMs * (1 + jitter * (2 * (yield* Random.next) - 1)))
  })
  yield* Effect.forkScoped(Effect.forever(round))

  return RegionHealth.of({ isHealthy: (code) => !sick.has(code) })
})

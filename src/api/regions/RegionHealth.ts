// Which regions answer, and their distance on the network: probes each region's edge in rounds and keeps the results.
// Off unless an operator enables it; without it every region counts as healthy and none as measured.
import { Clock, Context, Effect, Layer, Random } from "effect"
import { RoundTripWindow } from "#domain/regions/RoundTripWindow.ts"
import type { RegionReading } from "#http/NodeMeters.ts"
import { httpProbe, type Probe, probeTimeoutMs, type Watched } from "./RegionProbe.ts"

interface Watch {
  readonly regions: ReadonlyArray<Watched>
  readonly everyMs: number
  readonly probe?: Probe
}

/** Probes in flight at once: a file of a thousand regions must not open a thousand connections. A guess. */
const atOnce = 8
/** Each pause is longer or shorter by up to this part, so that several routers do not probe in step. */
const jitter = 0.2
/** A measurement is valid for as long as this many of the longest rounds take. A guess. */
const roundsKept = 5

/** Maximum age of a measurement: rounds may be long with many regions, or many that do not answer. */
const maxAgeMs = ({ everyMs, regions }: Watch): number =>
  roundsKept * (everyMs * (1 + jitter) + Math.ceil(regions.length / atOnce) * probeTimeoutMs(everyMs))

export class RegionHealth extends Context.Service<
  RegionHealth,
  {
    readonly isHealthy: (code: string) => boolean
    /** The round trip from this process to the region's edge; undefined without a recent measurement. */
    readonly roundTripMs: (code: string, nowMs: number) => number | undefined
    /** Of every region that is probed, in the order of the settings. */
    readonly readings: (nowMs: number) => ReadonlyArray<RegionReading>
  }
>()("edgewise/api/RegionHealth") {
  static readonly unwatched = Layer.succeed(RegionHealth, {
    isHealthy: () => true,
    roundTripMs: () => undefined,
    readings: () => [],
  })

  /** Until the first answer a region counts as healthy; from then on its last answer decides. */
  static readonly watched = (watch: Watch): Layer.Layer<RegionHealth> =>
    Layer.effect(
      RegionHealth,
      Effect.suspend(() => make(watch)),
    )
}

const make = Effect.fnUntraced(function* (watch: Watch) {
  const { everyMs, regions, probe = httpProbe(everyMs) } = watch
  const unhealthy = new Set<string>()
  const ageMs = maxAgeMs(watch)
  const windows = new Map(regions.map(({ code }) => [code, new RoundTripWindow(ageMs)]))

  const look = Effect.fnUntraced(function* (region: Watched) {
    const probed = yield* probe(region)
    if (probed.healthy) {
      windows.get(region.code)?.add(probed.roundTripMs, yield* Clock.currentTimeMillis)
      yield* Effect.logDebug("probed a region").pipe(
        Effect.annotateLogs({ region: region.code, roundTripMs: Number(probed.roundTripMs.toFixed(2)) }),
      )
    }
    if (probed.healthy !== unhealthy.has(region.code)) return
    if (probed.healthy) unhealthy.delete(region.code)
    else unhealthy.add(region.code)
    const change = probed.healthy ? "region is healthy again" : "region is unhealthy"
    yield* Effect.annotateLogs(probed.healthy ? Effect.logInfo(change) : Effect.logWarning(change), {
      region: region.code,
    })
  })

  const round = Effect.gen(function* () {
    yield* Effect.forEach(regions, look, { concurrency: atOnce, discard: true })
    yield* Effect.sleep(everyMs * (1 + jitter * (2 * (yield* Random.next) - 1)))
  })
  yield* Effect.forkScoped(Effect.forever(round))

  const isHealthy = (code: string) => !unhealthy.has(code)
  const roundTripMs = (code: string, nowMs: number) => windows.get(code)?.shortestMs(nowMs)
  return RegionHealth.of({
    isHealthy,
    roundTripMs,
    readings: (nowMs) =>
      regions.map(({ code }) => ({
        region: code,
        healthy: isHealthy(code),
        roundTripMs: roundTripMs(code, nowMs),
      })),
  })
})

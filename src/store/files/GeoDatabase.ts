// Looks up the place of an IP address in a MaxMind-format file (country or city edition) that the operator provides.
import { Context, Effect, Layer, Schema } from "effect"
import { type CityResponse, open } from "maxmind"
import { isPoint } from "#domain/regions/Geography.ts"
import type { Place } from "#domain/regions/RegionChoice.ts"

class BadGeoDatabase extends Schema.TaggedError<BadGeoDatabase>()("BadGeoDatabase", {
  path: Schema.String,
  problem: Schema.String,
}) {
  override get message(): string {
    return `geo database ${this.path}: ${this.problem}`
  }

  /** Exit status of the command: the setting names a wrong file. */
  readonly exitStatus = 2
}

const problemOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  if (!("code" in cause)) return `is not a MaxMind-format file (${cause.message})`
  return cause.code === "ENOENT" ? "there is no such file" : `cannot be read (${String(cause.code)})`
}

/** Lookups kept decoded. The package's default. */
const cachedAnswers = 10_000

/** The fields are `unknown` because smaller editions and other makers' files lack some of the package's types. */
interface Entry {
  readonly country?: { readonly iso_code?: unknown }
  readonly registered_country?: { readonly iso_code?: unknown }
  readonly location?: { readonly latitude?: unknown; readonly longitude?: unknown }
}

const placeOf = ({ country, location, registered_country }: Entry): Place => {
  const code = country?.iso_code ?? registered_country?.iso_code
  const { latitude, longitude } = location ?? {}
  const point =
    typeof latitude === "number" && typeof longitude === "number" && isPoint({ latitude, longitude })
      ? { latitude, longitude }
      : undefined
  return {
    ...(typeof code === "string" && /^[A-Z]{2}$/.test(code) ? { country: code } : {}),
    ...(point === undefined ? {} : { point }),
  }
}

export class GeoDatabase extends Context.Service<
  GeoDatabase,
  {
    /** Empty if the address is unknown or not an address. */
    readonly locate: (address: string) => Place
  }
>()("edgewise/store/GeoDatabase") {
  static readonly none = Layer.succeed(GeoDatabase, { locate: () => ({}) })

  /** Reads the whole file into memory once (a city edition has about 60 MB). */
  static readonly file = (path: string): Layer.Layer<GeoDatabase, BadGeoDatabase> =>
    Layer.effect(
      GeoDatabase,
      Effect.gen(function* () {
        const reader = yield* Effect.tryPromise({
          try: () => open<CityResponse>(path, { cache: { max: cachedAnswers } }),
          catch: (cause) => new BadGeoDatabase({ path, problem: problemOf(cause) }),
        })
        return GeoDatabase.of({
          locate: (address) => {
            try {
              const entry: Entry | null = reader.get(address)
              return entry === null ? {} : placeOf(entry)
            } catch {
              // Not an address, or an IPv6 address in an IPv4 database.
              return {}
            }
          },
        })
      }),
    )
}

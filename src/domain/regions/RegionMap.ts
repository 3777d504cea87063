// The schema of a regions file: regions, and measured round trips between countries. The built-in regions are in
// Regions. Pure.
import { Effect, Schema } from "effect"

/** ISO 3166-1 alpha-2, upper case. */
export const Country = Schema.String.check(Schema.isPattern(/^[A-Z]{2}$/))

const code = Schema.String.check(Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,31}$/))
const degrees = (limit: number) => Schema.Finite.check(Schema.isBetween({ minimum: -limit, maximum: limit }))

export const Region = Schema.Struct({
  code,
  /** The place, as people read it. */
  name: Schema.NonEmptyString,
  country: Country,
  latitude: degrees(90),
  longitude: degrees(180),
  /** Base address of its edge, without a trailing slash. If absent, the router derives it. */
  endpoint: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^https?:\/\/[^\s/?#@]+$/))),
})
export type Region = typeof Region.Type

/** Measured round trips in ms: client's country → country with edges. Each entry counts for both directions. */
export const RoundTrips = Schema.Record(
  Schema.String,
  Schema.Record(Schema.String, Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))),
)
export type RoundTrips = typeof RoundTrips.Type

export const RegionMap = Schema.Struct({
  regions: Schema.NonEmptyArray(Region),
  rtt_ms: RoundTrips.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
})
export type RegionMap = typeof RegionMap.Type

/** The address of an edge (protocol 1.1). */
export const edgeAddress = (region: string, domain: string): string => `https://api.${region}.edge.${domain}`

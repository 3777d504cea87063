// What a router knows of the world: its regions, and the round trips between countries that somebody has measured.
// The schema of a regions file; the specification's own sixteen are in Regions. Pure.
import { Effect, Schema } from "effect"

/** ISO 3166-1 alpha-2, upper case. */
export const Country = Schema.String.check(Schema.isPattern(/^[A-Z]{2}$/))

const code = Schema.String.check(Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,31}$/))
const degrees = (limit: number) => Schema.Finite.check(Schema.isBetween({ minimum: -limit, maximum: limit }))

export const Region = Schema.Struct({
  code,
  /** The place, for people. */
  name: Schema.NonEmptyString,
  country: Country,
  latitude: degrees(90),
  longitude: degrees(180),
  /** Base address of its edge, without a slash at the end; where absent, the router makes one. */
  endpoint: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^https?:\/\/[^\s/?#@]+$/))),
})
export type Region = typeof Region.Type

/** Measured round trips in ms: caller's country → country with edges. One direction is enough, it is read as both. */
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

/** The specification's form of an edge's address. */
export const edgeAddress = (region: string, domain: string): string => `https://api.${region}.edge.${domain}`

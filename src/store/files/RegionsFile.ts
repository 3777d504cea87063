// Reads an operator's regions file: regions with their places and addresses, and measured round trips. A file with
// mistakes is refused with the line of each.
import { Effect, Result, Schema } from "effect"
import { Country, RegionMap } from "#domain/regions/RegionMap.ts"
import { nodeRegions } from "#domain/regions/Regions.ts"
import type { JsonPlaces } from "./JsonPlaces.ts"
import { firstOf, type Owner, readOperatorFile } from "./OperatorFile.ts"
import { decodeStrictly, type Mistake } from "./SchemaMistakes.ts"

export class BadRegions extends Schema.TaggedError<BadRegions>()("BadRegions", {
  path: Schema.String,
  problem: Schema.String,
  /** For a refused file: one line per mistake. */
  lines: Schema.optionalKey(Schema.Array(Schema.String)),
}) {
  override get message(): string {
    return this.lines === undefined ? `${this.path}: ${this.problem}` : firstOf(this.lines)
  }

  readonly exitStatus = 2
}

const regionOf: Owner = (_, path) =>
  path[0] === "regions" && typeof path[1] === "number" ? { name: `regions[${path[1]}]`, depth: 2 } : undefined

const codesTwice = ({ regions }: RegionMap): ReadonlyArray<Mistake> => {
  const codes = new Set<string>()
  return regions.flatMap(({ code }, index) => {
    if (!codes.has(code)) {
      codes.add(code)
      return []
    }
    return [{ path: ["regions", index, "code"], problem: `${code} occurs twice` }]
  })
}

/** `local` is the code of a node outside of all regions, so no region may have it. */
const localTwice = ({ regions }: RegionMap): ReadonlyArray<Mistake> =>
  regions.flatMap(({ code }, index) =>
    code === "local"
      ? [{ path: ["regions", index, "code"], problem: '"local" means a node outside of all regions' }]
      : [],
  )

const isCountry = Schema.is(Country)

/** Round trips are keyed by country codes, which the schema does not check. */
const countries = ({ rtt_ms }: RegionMap): ReadonlyArray<Mistake> =>
  Object.entries(rtt_ms)
    .flatMap(([from, row]) => [["rtt_ms", from], ...Object.keys(row).map((to) => ["rtt_ms", from, to])])
    .filter((path) => !isCountry(path.at(-1)))
    .map((path) => ({ path, atKey: true, problem: "is not a country code, two upper-case letters" }))

const check = (json: JsonPlaces) =>
  Effect.sync((): Result.Result<RegionMap, ReadonlyArray<Mistake>> => {
    const decoded = decodeStrictly(RegionMap, json.value)
    if (Result.isFailure(decoded)) return decoded
    const mistakes = [
      ...codesTwice(decoded.success),
      ...localTwice(decoded.success),
      ...countries(decoded.success),
    ]
    return mistakes.length === 0 ? decoded : Result.fail(mistakes)
  })

export const readRegions = (path: string): Effect.Effect<RegionMap, BadRegions> =>
  Effect.mapError(
    readOperatorFile(path, "regions file", regionOf, check),
    (lines) => new BadRegions({ path, problem: "is refused", lines }),
  )

/**
 * Region codes that a node and a catalog entry may name: those of the regions file, or the built-in ones without a
 * file.
 */
export const regionCodesInForce = (path: string): Effect.Effect<ReadonlyArray<string>, BadRegions> =>
  path === ""
    ? Effect.succeed(nodeRegions)
    : Effect.map(readRegions(path), ({ regions }) => ["local", ...regions.map(({ code }) => code)])

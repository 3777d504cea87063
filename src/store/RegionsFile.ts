// Reads an operator's regions file: regions with their places and addresses, and measured round trips. Called by serve.
import { readFile, stat } from "node:fs/promises"
import { Effect, Schema } from "effect"
import { RegionMap } from "#domain/RegionMap.ts"

export class BadRegions extends Schema.TaggedError<BadRegions>()("BadRegions", {
  path: Schema.String,
  problem: Schema.String,
}) {
  override get message(): string {
    return `regions ${this.path}: ${this.problem}`
  }
}

/** A line a region and a line a pair of countries: a megabyte is far more than there are. */
const maxRegionsBytes = 1_000_000

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(RegionMap))

export const readRegions = (path: string): Effect.Effect<RegionMap, BadRegions> =>
  Effect.gen(function* () {
    const bad = (problem: string) => new BadRegions({ path, problem })
    const unreadable = () => bad("cannot be read")
    const { size } = yield* Effect.tryPromise({ try: () => stat(path), catch: unreadable })
    if (size > maxRegionsBytes) return yield* bad(`is larger than ${maxRegionsBytes} bytes`)
    const text = yield* Effect.tryPromise({ try: () => readFile(path, "utf8"), catch: unreadable })
    const map = yield* Effect.mapError(decode(text), (error) => bad(error.message))
    const codes = new Set<string>()
    for (const { code } of map.regions) {
      if (codes.has(code)) return yield* bad(`${code} is there twice`)
      codes.add(code)
    }
    return map
  })

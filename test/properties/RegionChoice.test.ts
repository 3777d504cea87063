// The choice of a region over made-up worlds, and the tables it rests on.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { countryHub, hubCountries } from "#domain/CountryHubs.ts"
import { isPoint, kilometresBetween } from "#domain/Geography.ts"
import { regionCodes } from "#domain/Region.ts"
import { type Choice, chooseRegion } from "#domain/RegionChoice.ts"
import { builtInRegions } from "#domain/Regions.ts"

const country = fc.constantFrom("CA", "US", "MX", "FR", "JP", "BR")
const point = fc.record({
  latitude: fc.double({ min: -90, max: 90, noNaN: true }),
  longitude: fc.double({ min: -180, max: 180, noNaN: true }),
})
const region = fc
  .tuple(country, point)
  .map(([at, { latitude, longitude }]) => ({ name: "somewhere", country: at, latitude, longitude }))
const regions = fc
  .array(region, { minLength: 1, maxLength: 12 })
  .map((places) => places.map((place, i) => ({ code: `r-${i}`, ...place })))
const rttMs = fc.dictionary(country, fc.dictionary(country, fc.integer({ min: 0, max: 400 })))

interface World {
  readonly choice: Choice
  readonly sick: ReadonlySet<string>
}
const world: fc.Arbitrary<World> = fc
  .record({
    regions,
    rttMs,
    point,
    country: fc.option(country, { nil: undefined }),
    scope: fc.constantFrom("country" as const, "global" as const),
    spread: fc.nat(),
    sickness: fc.array(fc.nat({ max: 11 }), { maxLength: 12 }),
  })
  .map(({ sickness, ...rest }) => {
    const sick = new Set(sickness.map((i) => `r-${i}`))
    return { sick, choice: { ...rest, isHealthy: (code: string) => !sick.has(code) } }
  })

const healthyOf = ({ choice, sick }: World) => choice.regions.filter(({ code }) => !sick.has(code))
const distanceKm = (choice: Choice, chosen: { readonly latitude: number; readonly longitude: number }) =>
  kilometresBetween(choice.point, chosen)
/** Two sites of a spot are a kilometre apart at most, so the chosen one may be that much farther. */
const spotKm = 1.001

describe("the choice of a region", () => {
  it("is a healthy one, and there is one as long as any is healthy", () => {
    fc.assert(
      fc.property(world, (given) => {
        const chosen = chooseRegion(given.choice)
        if (chosen === undefined) expect(healthyOf(given)).toEqual([])
        else expect(healthyOf(given)).toContain(chosen)
      }),
      { numRuns: 1_000 },
    )
  })

  it("is in the caller's country where that has a healthy one, and the nearest there", () => {
    fc.assert(
      fc.property(world, (given) => {
        const choice: Choice = { ...given.choice, scope: "country" }
        const home = healthyOf(given).filter((each) => each.country === choice.country)
        fc.pre(home.length > 0)
        const chosen = chooseRegion(choice)!
        expect(chosen.country).toBe(choice.country)
        for (const each of home)
          expect(distanceKm(choice, chosen)).toBeLessThanOrEqual(distanceKm(choice, each) + spotKm)
      }),
      { numRuns: 1_000 },
    )
  })

  it("with scope=global is the nearest of all, whatever the borders and the table", () => {
    fc.assert(
      fc.property(world, (given) => {
        const choice: Choice = { ...given.choice, scope: "global" }
        const chosen = chooseRegion(choice)
        for (const each of healthyOf(given))
          expect(distanceKm(choice, chosen!)).toBeLessThanOrEqual(distanceKm(choice, each) + spotKm)
        expect(chooseRegion({ ...choice, country: "ZZ", rttMs: {} })).toEqual(chosen)
      }),
      { numRuns: 1_000 },
    )
  })

  it("across a border is in the country of the shortest measured round trip, else the nearest of all", () => {
    fc.assert(
      fc.property(world, (given) => {
        const choice: Choice = { ...given.choice, scope: "country", country: "BR" }
        const healthy = healthyOf(given)
        fc.pre(healthy.length > 0 && healthy.every((each) => each.country !== "BR"))
        const ms = (to: string) => choice.rttMs.BR?.[to] ?? choice.rttMs[to]?.BR ?? Number.POSITIVE_INFINITY
        const chosen = chooseRegion(choice)!
        const shortest = Math.min(...healthy.map((each) => ms(each.country)))
        if (shortest === Number.POSITIVE_INFINITY) {
          expect(chosen).toEqual(chooseRegion({ ...choice, scope: "global" }))
        } else expect(ms(chosen.country)).toBe(shortest)
      }),
      { numRuns: 1_000 },
    )
  })

  it("is the same for the same caller", () => {
    fc.assert(
      fc.property(world, ({ choice }) => {
        expect(chooseRegion(choice)).toEqual(chooseRegion({ ...choice }))
      }),
    )
  })
})

describe("what is known of the world", () => {
  it("distance is symmetric, zero at home and at most half the Earth", () => {
    fc.assert(
      fc.property(point, point, (a, b) => {
        const km = kilometresBetween(a, b)
        expect(km).toBeCloseTo(kilometresBetween(b, a), 6)
        expect(kilometresBetween(a, a)).toBe(0)
        expect(km).toBeGreaterThanOrEqual(0)
        expect(km).toBeLessThanOrEqual(20_016)
      }),
    )
  })

  it("agrees with distances anybody can look up, within 1 %", () => {
    const at = (code: string) => builtInRegions.find((each) => each.code === code)!
    for (const [from, to, km] of [
      ["yto-01", "yul-01", 505],
      ["nyc-01", "sfo-01", 4_130],
      ["mia-01", "sea-01", 4_400],
    ] as const)
      expect(Math.abs(kilometresBetween(at(from), at(to)) / km - 1)).toBeLessThan(0.01)
  })

  it("has the specification's sixteen regions, each in its country", () => {
    expect(builtInRegions.map((each) => each.code)).toEqual([...regionCodes])
    expect(builtInRegions).toHaveLength(16)
    for (const each of builtInRegions) {
      expect(each.country).toBe(each.code.startsWith("y") ? "CA" : "US")
      expect(isPoint(each)).toBe(true)
    }
  })

  it("has a hub for every country that has a name, within its bounds", () => {
    const names = new Intl.DisplayNames(["en"], { type: "region", fallback: "none" })
    expect(new Set(hubCountries).size).toBe(250)
    for (const code of hubCountries) {
      expect([code, names.of(code) !== undefined]).toEqual([code, true])
      expect([code, isPoint(countryHub(code)!)]).toEqual([code, true])
    }
    // Spot checks of both signs.
    expect(countryHub("AR")).toEqual({ latitude: -34.6, longitude: -58.4 })
    expect(countryHub("JP")).toEqual({ latitude: 35.7, longitude: 139.7 })
    expect(countryHub("QQ")).toBeUndefined()
  })
})

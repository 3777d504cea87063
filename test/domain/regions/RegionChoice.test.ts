// The choice of a region over random worlds, and the tables that it uses.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { countryHub, hubCountries } from "#domain/regions/CountryHubs.ts"
import { isPoint, kilometresBetween } from "#domain/regions/Geography.ts"
import { type Choice, chooseRegion } from "#domain/regions/RegionChoice.ts"
import { builtInRegions, nodeRegions } from "#domain/regions/Regions.ts"

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
/** The router's measurements: its place, and a round trip for some of the regions. */
const measurements = fc
  .record({
    from: point,
    ms: fc.array(fc.option(fc.integer({ min: 0, max: 500 }), { nil: undefined }), {
      minLength: 12,
      maxLength: 12,
    }),
  })
  .map(({ from, ms }) => ({ from, roundTripMs: (code: string) => ms[Number(code.slice(2))] }))
const rttMs = fc.dictionary(country, fc.dictionary(country, fc.integer({ min: 0, max: 400 })))

interface World {
  readonly choice: Choice
  readonly sick: ReadonlySet<string>
}
const world: fc.Arbitrary<World> = fc
  .record({
    regions,
    rttMs,
    measurements: fc.option(measurements, { nil: undefined }),
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

/** The same world, with another measurement of one region. */
const withMeasured = (choice: Choice, at: string, ms: number): Choice => ({
  ...choice,
  measurements: choice.measurements && {
    ...choice.measurements,
    roundTripMs: (code) => (code === at ? ms : choice.measurements?.roundTripMs(code)),
  },
})
const abroad = (choice: Choice): Choice => ({ ...choice, scope: "country", country: "DE", rttMs: {} })

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
        expect(chooseRegion({ ...choice, country: "ZZ", rttMs: {}, measurements: undefined })).toEqual(chosen)
      }),
      { numRuns: 1_000 },
    )
  })

  it("across a border is in the country of the shortest measured round trip, else the nearest of all", () => {
    fc.assert(
      fc.property(world, (given) => {
        const choice: Choice = { ...given.choice, scope: "country", country: "BR", measurements: undefined }
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

  it("across a border stays in the operator's country, also where the router has measured", () => {
    fc.assert(
      fc.property(world, (given) => {
        const choice: Choice = { ...given.choice, scope: "country", country: "BR" }
        const healthy = healthyOf(given)
        fc.pre(healthy.length > 0 && healthy.every((each) => each.country !== "BR"))
        const ms = (to: string) => choice.rttMs.BR?.[to] ?? choice.rttMs[to]?.BR ?? Number.POSITIVE_INFINITY
        expect(ms(chooseRegion(choice)!.country)).toBe(Math.min(...healthy.map((each) => ms(each.country))))
      }),
      { numRuns: 1_000 },
    )
  })

  it("across a border, for a caller where the router stands, is the region of the shortest round trip", () => {
    fc.assert(
      fc.property(world, measurements, (given, measured) => {
        const choice = abroad({ ...given.choice, measurements: measured, point: measured.from })
        const known = healthyOf(given).flatMap(({ code }) => measured.roundTripMs(code) ?? [])
        fc.pre(known.length > 0 && known.length === healthyOf(given).length)
        const chosen = measured.roundTripMs(chooseRegion(choice)!.code)!
        // Sites of one spot share their callers within 2 ms.
        expect(chosen).toBeLessThanOrEqual(Math.min(...known) + 2)
      }),
      { numRuns: 1_000 },
    )
  })

  it("keeps a region whose round trip becomes shorter, and never wins one by becoming longer", () => {
    fc.assert(
      fc.property(world, measurements, fc.nat({ max: 500 }), (given, measured, ms) => {
        const choice = abroad({ ...given.choice, measurements: measured })
        fc.pre(healthyOf(given).length > 0)
        const chosen = chooseRegion(choice)!
        const shorter = Math.min(ms, measured.roundTripMs(chosen.code) ?? -1)
        if (shorter >= 0) expect(chooseRegion(withMeasured(choice, chosen.code, shorter))).toEqual(chosen)
        for (const { code } of healthyOf(given)) {
          const before = measured.roundTripMs(code)
          if (code === chosen.code || before === undefined) continue
          expect(chooseRegion(withMeasured(choice, code, before + ms))!.code).not.toBe(code)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it("does so also where two estimates are equal but for rounding", () => {
    const place = (code: string, latitude: number) => ({
      code,
      name: code,
      country: "CA",
      latitude,
      longitude: 0,
    })
    const point = { latitude: 0, longitude: 0 }
    const choose = (ms: number) =>
      chooseRegion({
        // Equally far away, and only the first one was measured.
        regions: [place("r-0", 89.9999999999998), place("r-1", -89.9999999999998)],
        isHealthy: () => true,
        rttMs: {},
        measurements: { from: point, roundTripMs: (code) => (code === "r-0" ? ms : undefined) },
        country: "DE",
        point,
        scope: "country",
        spread: 0,
      })?.code
    for (let ms = 151; ms < 700; ms++) expect([ms, choose(ms)]).toEqual([ms, "r-0"])
  })

  it("moves no other caller when one of the sites of a spot falls ill", () => {
    const sites = Array.from({ length: 4 }, (_, i) => ({
      code: `yul-0${i}`,
      name: "Montreal",
      country: "CA",
      latitude: 45.5,
      longitude: -73.57,
    }))
    const choose = (spread: number, sick: string) =>
      chooseRegion({
        regions: sites,
        isHealthy: (code) => code !== sick,
        rttMs: {},
        measurements: undefined,
        country: "CA",
        point: { latitude: 45, longitude: -73 },
        scope: "country",
        spread,
      })!.code
    const counts = new Map<string, number>()
    for (let spread = 0; spread < 4_000; spread++) {
      const before = choose(spread, "none")
      counts.set(before, (counts.get(before) ?? 0) + 1)
      if (before !== "yul-02") expect(choose(spread, "yul-02")).toBe(before)
      else expect(choose(spread, "yul-02")).not.toBe("yul-02")
    }
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(200)
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

  it("agrees with published distances, within 1 %", () => {
    const at = (code: string) => builtInRegions.find((each) => each.code === code)!
    for (const [from, to, km] of [
      ["yto-01", "yul-01", 505],
      ["nyc-01", "sfo-01", 4_130],
      ["mia-01", "sea-01", 4_400],
    ] as const)
      expect(Math.abs(kilometresBetween(at(from), at(to)) / km - 1)).toBeLessThan(0.01)
  })

  it("has the sixteen regions of protocol 15.4, each in its country", () => {
    expect(nodeRegions).toEqual(["local", ...builtInRegions.map((each) => each.code), "sfo-02"])
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

// The facts that catalogs are checked with, against the adapters themselves: loading an adapter loads its native library.
import { expect, it } from "vitest"
import { type AdapterFacts, adapterFacts } from "#engines/AdapterFacts.ts"
import { adapters } from "#engines/adapters.ts"
import { uses } from "../support/groups/Uses.ts"

it("are those of the adapters", async () => {
  uses("weights", "native libraries, which a worker loads once")
  expect(Object.keys(adapterFacts).toSorted()).toEqual(Object.keys(adapters).toSorted())
  for (const [name, load] of Object.entries(adapters)) {
    const facts: AdapterFacts | undefined = adapterFacts[name]
    expect([name, (await load()).kind]).toEqual([name, facts?.kind])
  }
})

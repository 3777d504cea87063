// From where a development key is accepted, by the settings of a node.
import { expect, it } from "vitest"
import { type DevKeySetting, devKeyAccess } from "#domain/access/DevelopmentKey.ts"

const access = (setting: DevKeySetting, host: string, sharedDatabase: boolean) => {
  const decided = devKeyAccess({ setting, host, sharedDatabase })
  return decided.from === "nowhere" ? decided.because : decided.from
}

it("is its own machine where only that can reach the node, else nowhere, unless the operator says more or less", () => {
  for (const host of ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"]) {
    expect([host, access("loopback", host, false)]).toEqual([host, "loopback"])
    expect([host, access("loopback", host, true)]).toEqual([host, "shared database"])
  }
  for (const host of ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1", "::ffff:0.0.0.0"])
    expect([host, access("loopback", host, false)]).toEqual([host, "beyond loopback"])
  for (const host of ["127.0.0.1", "0.0.0.0"])
    for (const shared of [true, false]) {
      expect(access("anywhere", host, shared)).toBe("anywhere")
      expect(access("off", host, shared)).toBe("off")
    }
})

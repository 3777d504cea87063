// The packages that `edgewise setup webrtc` installs are those of the lock file, and a node that cannot run without them says so.
import { expect, it } from "vitest"
import { callPackages, webrtcProblem } from "#cli/setup/CallPackages.ts"
import lock from "../../../package-lock.json" with { type: "json" }

it("has the library of the lock file, for the systems that the package serves", () => {
  for (const processor of ["x64", "arm64"] as const) {
    const name = `@node-datachannel/linux-${processor}-gnu` as const
    const { integrity, version } = lock.packages[`node_modules/${name}`]
    expect(callPackages(`linux-${processor}`)).toMatchObject([{ name, integrity, version }])
  }
})

it("names the command for a node that takes calls without the library", () => {
  expect(webrtcProblem({ webrtcPort: 40_100 }, () => false)).toBe(
    "EDGEWISE_WEBRTC_PORT=40100: the library of WebRTC calls is not installed: run edgewise setup webrtc",
  )
  expect(webrtcProblem({ webrtcPort: 40_100 }, () => true)).toBeUndefined()
  expect(webrtcProblem({ webrtcPort: 0 }, () => false)).toBeUndefined()
})

// In which cork a request of uWebSockets.js becomes a WebSocket: that of its own response closed the new socket at times.
import { describe, expect, it } from "vitest"
import type { SocketEvents } from "#transport/exchange/Channel.ts"
import type { HttpResponse, UpgradeContext } from "#transport/uws/Uws.ts"
import { UwsReply } from "#transport/uws/UwsReply.ts"

const made = () => {
  const corks: Array<string> = []
  const upgradedIn: Array<ReadonlyArray<string>> = []
  const inside = (name: string) => (write: () => void) => {
    corks.push(name)
    write()
    corks.pop()
  }
  const res = {
    cork: inside("own"),
    writeStatus: () => {},
    upgrade: () => upgradedIn.push([...corks]),
  } as unknown as HttpResponse
  const reply = new UwsReply(res, { context: {} as UpgradeContext, spareCork: inside("spare") })
  return { reply, upgradedIn }
}
const live = {} as SocketEvents

describe("a request becomes a WebSocket", () => {
  it("in its own callback without another cork", () => {
    const { reply, upgradedIn } = made()
    reply.upgrade(live, { protocol: "", headers: {}, inCallback: true })
    expect(upgradedIn).toEqual([[]])
  })

  it("later in the spare response's cork", () => {
    const { reply, upgradedIn } = made()
    reply.cork(() => reply.writeStatus(101))
    reply.upgrade(live, { protocol: "", headers: {}, inCallback: false })
    expect(upgradedIn).toEqual([["spare"]])
  })
})

// The address of the real caller: which proxies are trusted, and that no other peer can forge an address.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { clientAddress, parseProxies, subscriberOf } from "#domain/access/ClientAddress.ts"
import { ownAddress } from "#domain/access/OwnAddress.ts"

const trusted = parseProxies("10.0.0.0/8, 192.0.2.1, fd00::/8, ::1")!

describe("trusted proxies", () => {
  it("are addresses and blocks of both families", () => {
    for (const address of ["10.0.0.1", "10.255.255.255", "192.0.2.1", "fd12::1", "::1"])
      expect([address, trusted(address)]).toEqual([address, true])
    for (const address of ["11.0.0.1", "192.0.2.2", "fe80::1", "::2", "", "nonsense"])
      expect([address, trusted(address)]).toEqual([address, false])
  })

  it.each([
    "",
    "10.0.0.0/33",
    "10.0.0.0/",
    "::1/129",
    "10.0.0",
    "proxy.example.com",
    "10.0.0.1,",
    "1.2.3.4/-1",
  ])("are not %j", (text) => {
    expect(parseProxies(text)).toBeUndefined()
  })
})

describe("a client's address", () => {
  it.each([
    ["the peer's, where no proxy is trusted", "203.0.113.1", "198.51.100.1", "203.0.113.1"],
    ["the one its proxy has seen", "10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["the last before the trusted proxies", "10.0.0.1", "6.6.6.6, 198.51.100.1, 10.9.9.9", "198.51.100.1"],
    ["never the one a client has made up", "10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
    ["of IPv6", "::1", "2001:db8::7", "2001:db8::7"],
    ["without a port", "10.0.0.1", "198.51.100.1:4711", "198.51.100.1"],
    ["without brackets", "10.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"],
    ["the proxy's own, where it has nothing sensible to say", "10.0.0.1", "unknown", "10.0.0.1"],
    ["the proxy's own, without the header", "10.0.0.1", undefined, "10.0.0.1"],
    ["a trusted one, where all of them are", "10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.2"],
  ])("is %s", (_, peer, forwardedFor, expected) => {
    expect(clientAddress(peer, forwardedFor, trusted)).toBe(expected)
  })

  it("never depends on what stands before an untrusted address", () => {
    fc.assert(
      fc.property(fc.string(), (made) => {
        expect(clientAddress("10.0.0.1", `${made}, 198.51.100.1`, trusted)).toBe("198.51.100.1")
        expect(clientAddress("198.51.100.1", made, trusted)).toBe("198.51.100.1")
      }),
    )
  })
})

describe("a subscriber", () => {
  it("is an IPv4 address, or the network half of an IPv6 one however that is written", () => {
    expect(subscriberOf("192.0.2.1")).toBe("192.0.2.1")
    const full = "2001:0db8:0000:0001:aaaa:bbbb:cccc:dddd"
    expect(subscriberOf(full)).toBe("2001:db8:0:1")
    expect(subscriberOf("2001:DB8:0:1::5")).toBe(subscriberOf(full))
    expect(subscriberOf("2001:db8:0:2::5")).not.toBe(subscriberOf(full))
    expect(subscriberOf("::1")).toBe("0:0:0:0")
    expect(subscriberOf("1::")).toBe("1:0:0:0")
    expect(subscriberOf("fe80::1%eth0")).toBe("fe80:0:0:0")
    expect(subscriberOf("::ffff:192.0.2.1")).toBe("0:0:0:0")
  })

  it("exists for every IPv6 address", () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        expect(subscriberOf(address).split(":")).toHaveLength(4)
      }),
    )
  })
})

it("a node's own address is the one it listens on, or the name it was asked by", () => {
  expect(ownAddress("http://192.0.2.1:8080", "other:1")).toBe("http://192.0.2.1:8080")
  expect(ownAddress("http://0.0.0.0:8080", "box:8082")).toBe("http://box:8080")
  expect(ownAddress("http://[::]:8080", "[fd00::1]")).toBe("http://[fd00::1]:8080")
  expect(ownAddress("https://0.0.0.0:8080", "box:8082")).toBe("https://box:8080")
  for (const host of [undefined, "", "a b", "a/b", "a@b", "a:b:c", "a\\b"])
    expect(ownAddress("http://0.0.0.0:8080", host)).toBe("http://127.0.0.1:8080")
})

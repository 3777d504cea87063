// Whether a request was made on this machine: addresses in every spelling, and what a proxy gives away.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parseProxies } from "#domain/access/ClientAddress.ts"
import { isLocalCaller, isLoopback, isLoopbackHost } from "#domain/access/Loopback.ts"

const noProxies = () => false
const trustsLoopback = parseProxies("127.0.0.0/8, ::1, 10.0.0.0/8")!

describe("a loopback address", () => {
  it.each([
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.255",
    "::1",
    "0:0:0:0:0:0:0:1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "::ffff:127.0.0.1",
    "::FFFF:7f00:0001",
    "0000:0000:0000:0000:0000:ffff:7f12:0304",
    "::1%lo",
  ])("is %s", (address) => {
    expect(isLoopback(address)).toBe(true)
  })

  it.each([
    "",
    "localhost",
    "0.0.0.0",
    "::",
    "128.0.0.1",
    "12.7.0.1",
    "127.1",
    "127.0.0.1:80",
    "127.0.0.1.example.com",
    "::2",
    "::127.0.0.1",
    "::ffff:126.0.0.1",
    "::ffff:7:0",
    "64:ff9b::127.0.0.1",
    "fe80::1",
    "fd00::7f00:1",
    "192.0.2.127",
  ])("is not %j", (address) => {
    expect(isLoopback(address)).toBe(false)
  })

  it("is every address of 127.0.0.0/8, as IPv4 and as IPv4-mapped IPv6, and no other one", () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const expected = address.split(".")[0] === "127"
        expect(isLoopback(address)).toBe(expected)
        expect(isLoopback(`::ffff:${address}`)).toBe(expected)
      }),
    )
    fc.assert(
      fc.property(fc.nat(255), fc.nat(255), fc.nat(255), (a, b, c) => {
        expect(isLoopback(`127.${a}.${b}.${c}`)).toBe(true)
        expect(isLoopback(`::ffff:127.${a}.${b}.${c}`)).toBe(true)
      }),
    )
  })

  it("is never made of any other text, and no text is an exception", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(isLoopback(text)).toBe(false)
        expect(typeof isLoopbackHost(text)).toBe("boolean")
      }),
    )
  })
})

it("a Host header names this machine, or does not", () => {
  for (const host of [
    undefined,
    "",
    "localhost",
    "LOCALHOST:8080",
    "localhost.",
    "app.localhost:1",
    "127.0.0.1:80",
  ])
    expect([host, isLoopbackHost(host)]).toEqual([host, true])
  for (const host of ["[::1]:8080", "[::1]", "127.8.8.8"])
    expect([host, isLoopbackHost(host)]).toEqual([host, true])
  for (const host of [
    "example.com",
    "localhost.example.com",
    "notlocalhost",
    "192.0.2.1:80",
    "[2001:db8::1]:80",
  ])
    expect([host, isLoopbackHost(host)]).toEqual([host, false])
})

describe("a local caller", () => {
  const host = "127.0.0.1:8080"

  it("connects over loopback, without a sign of a proxy", () => {
    expect(isLocalCaller({ peer: "127.0.0.1", headers: { host } }, noProxies)).toBe(true)
    expect(isLocalCaller({ peer: "::1", headers: { host: "localhost" } }, noProxies)).toBe(true)
    expect(isLocalCaller({ peer: "127.0.0.1", headers: { host } }, trustsLoopback)).toBe(true)
    expect(isLocalCaller({ peer: "", headers: { host } }, noProxies)).toBe(false)
  })

  it.each<Readonly<Record<string, string>>>([
    { "x-forwarded-for": "203.0.113.1" },
    // The client may have made it up, so even this is no proof.
    { "x-forwarded-for": "127.0.0.1" },
    { "x-forwarded-for": "" },
    { forwarded: "for=203.0.113.1" },
    { "cf-connecting-ip": "203.0.113.1" },
    { "x-real-ip": "203.0.113.1" },
    { "true-client-ip": "203.0.113.1" },
    { "x-forwarded-proto": "https" },
    { "x-forwarded-host": "api.example.com" },
    { via: "1.1 vegur" },
    { "cf-ray": "1" },
    { host: "api.example.com" },
  ])("does not come through a proxy that is not listed: %o", (headers) => {
    expect(isLocalCaller({ peer: "127.0.0.1", headers: { host, ...headers } }, noProxies)).toBe(false)
  })

  it.each<readonly [Readonly<Record<string, string>>, boolean]>([
    [{ "x-forwarded-for": "127.0.0.1" }, true],
    [{ "x-forwarded-for": "[::1]:4711", "x-forwarded-proto": "https" }, true],
    [{ "x-forwarded-for": "127.0.0.1", host: "api.example.com" }, true],
    [{ forwarded: 'for="[::1]:80";proto=http' }, true],
    [{ "x-forwarded-for": "203.0.113.1" }, false],
    [{ "x-forwarded-for": "203.0.113.1, 127.0.0.1" }, false],
    [{ "x-forwarded-for": "127.0.0.1, 203.0.113.1" }, false],
    [{ "x-forwarded-for": "unknown" }, false],
    [{ "x-forwarded-for": "" }, false],
    [{ forwarded: "for=203.0.113.1" }, false],
    [{ forwarded: "for=127.0.0.1, for=203.0.113.1" }, false],
    [{ forwarded: "proto=https" }, false],
    [{ "x-forwarded-for": "127.0.0.1", "cf-connecting-ip": "203.0.113.1" }, false],
    // It does not report its client: the same signs count as for one that is not listed.
    [{ "x-forwarded-proto": "https" }, false],
    [{ host: "api.example.com" }, false],
  ])("is what a trusted proxy on this machine says: %o is %s", (headers, expected) => {
    expect(isLocalCaller({ peer: "127.0.0.1", headers: { host, ...headers } }, trustsLoopback)).toBe(expected)
  })

  it("is never one whose connection comes from elsewhere, whatever the headers and the trusted proxies", () => {
    const name = fc.constantFrom(
      "x-forwarded-for",
      "forwarded",
      "x-real-ip",
      "host",
      "via",
      "cf-connecting-ip",
    )
    const value = fc.oneof(fc.constantFrom("127.0.0.1", "localhost", "for=127.0.0.1"), fc.string())
    fc.assert(
      fc.property(fc.dictionary(name, value), fc.ipV4(), fc.boolean(), (headers, peer, isTrusted) => {
        fc.pre(!peer.startsWith("127."))
        expect(isLocalCaller({ peer, headers }, () => isTrusted)).toBe(false)
      }),
    )
  })

  it("never reports an address that is not loopback", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom<string>("127.0.0.1", "::1")),
        fc.ipV4(),
        fc.nat(),
        (locals, address, at) => {
          fc.pre(!address.startsWith("127."))
          const list = locals.toSpliced(at % (locals.length + 1), 0, address).join(", ")
          for (const isTrusted of [noProxies, trustsLoopback])
            expect(
              isLocalCaller({ peer: "127.0.0.1", headers: { "x-forwarded-for": list } }, isTrusted),
            ).toBe(false)
        },
      ),
    )
  })
})

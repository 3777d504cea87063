// Which addresses may be dialled for a caller's URL: a table, and properties of any address.
import { isIP, isIPv4, isIPv6 } from "node:net"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { isPublicAddress } from "#domain/access/PublicAddress.ts"

const refused = `
0.0.0.0 0.1.2.3 0.255.255.255 10.0.0.0 10.0.0.1 10.255.255.255 100.64.0.0 100.64.0.1 100.127.255.255
127.0.0.0 127.0.0.1 127.1.2.3 127.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.16.0.1
172.31.255.255 192.0.0.0 192.0.0.8 192.0.0.170 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.0 192.88.99.1
192.168.0.0 192.168.1.1 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.255 224.0.0.0 224.0.0.1
239.255.255.255 240.0.0.0 255.255.255.254 255.255.255.255
:: ::1 ::2 ::ffff ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::ffff:0:0 ::ffff:0:127.0.0.1
0:0:0:0:0:0:0:1 0000:0000:0000:0000:0000:0000:0000:0001 0:0:0:0:0:ffff:10.0.0.1 0:0:0:0:0:FFFF:A00:1
64:ff9b:: 64:ff9b::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::10.0.0.1 100:: 100::1 100:0:0:1::1
2001:: 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:10::1 2001:20::1 2001:1ff:ffff::1 2001:db8:: 2001:db8::1
2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:7f00:1:: 2002:7f00:0001::1 2002:0808:0808::1 2002:a00:1::1
3fff:: 3fff:fff:ffff::1 4000::1 5f00::1 8000::1 c000::1 fc00:: fc00::1 fd00::1 fd12:3456:789a::1 fdff::ffff
fe00::1 fe80:: fe80::1 febf::1 fec0::1 ff00:: ff01::1 ff02::1 ff02::fb ff0e::1 ffff::1 1fff::1
fe80::1%eth0 2606:4700::1%1
`
const publicAddresses = `
1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.88.98.255
192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255
203.0.114.0 223.255.255.255
2000::1 2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2003::1 2606:4700:4700::1111 2a00:1450::1
2A00:1450:4001:0:0:0:0:1 3ffe::1 3fff:1000::1 2606:4700:0:0:0:0:8.8.8.8
`
/** Ways to write an address that resolvers do not use and that obscure which address is meant. */
const odd = [
  "",
  " ",
  "127.1",
  "127.0.1",
  "2130706433",
  "0x7f000001",
  "0x7f.0.0.1",
  "0177.0.0.1",
  "017700000001",
].concat(
  [
    "08.8.8.8",
    "8.8.8.08",
    "8.8.8.256",
    "8.8.8",
    "8.8.8.8.8",
    "8.8.8.8.",
    ".8.8.8.8",
    "8.8.8.8 ",
    "8,8,8,8",
    "８.8.8.8",
  ],
  [
    "[2606:4700::1]",
    "2606:4700::1::2",
    "2606:4700",
    "2606:4700:1:2:3:4:5:6:7",
    "2606:4700:::1",
    "g606::1",
    "26060::1",
  ],
  [
    "1:2:3:4:5:6:7::8",
    "localhost",
    "example.com",
    "8.8.8.8:80",
    "2606::8.8.8",
    "2606::8.8.8.8.8",
    "2606:8.8.8.8::1",
  ],
)
const words = (table: string) => table.split(/\s+/).filter((word) => word !== "")

describe("isPublicAddress", () => {
  it("refuses every inner address of the table", () => {
    for (const address of words(refused)) expect(isPublicAddress(address), address).toBe(false)
  })

  it("accepts every public address of the table", () => {
    for (const address of words(publicAddresses)) expect(isPublicAddress(address), address).toBe(true)
  })

  it("refuses what is not plainly an address", () => {
    for (const text of odd) expect(isPublicAddress(text), text).toBe(false)
  })

  it("has real addresses in its tables", () => {
    for (const address of words(refused + publicAddresses))
      expect(isIPv4(address) || isIPv6(address), address).toBe(true)
  })

  it("judges an IPv6 address the same however it is written", () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1)
        expect(isPublicAddress(address)).toBe(isPublicAddress(canonical))
        expect(isPublicAddress(address.toUpperCase())).toBe(isPublicAddress(canonical))
      }),
      { numRuns: 500 },
    )
  })

  it("never accepts an IPv4 address inside an IPv6 one outside of global unicast", () => {
    fc.assert(
      fc.property(
        fc.ipV4(),
        fc.constantFrom("::", "::ffff:", "::ffff:0:", "64:ff9b::"),
        (address, prefix) => {
          expect(isPublicAddress(prefix + address)).toBe(false)
        },
      ),
    )
  })

  it("never throws, and accepts nothing that is not an address", () => {
    const address = fc.stringMatching(/^[0-9a-f:.]{1,45}$/)
    fc.assert(
      fc.property(
        fc.oneof(address, fc.string(), fc.ipV4Extended(), fc.ipV4(), fc.ipV6(), fc.domain()),
        (text) => {
          if (isPublicAddress(text)) expect(isIP(text)).not.toBe(0)
        },
      ),
      { numRuns: 3000 },
    )
  })
})

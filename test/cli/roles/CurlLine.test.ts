// The command that `serve` prints: an address that is reachable, and the curl flag that accepts the certificate.
import { describe, expect, it } from "vitest"
import { curlLine, readyLine } from "#cli/roles/CurlLine.ts"
import { checkPair, isProblem } from "#domain/access/Certificate.ts"
import { makePair } from "../../support/servers/TestCertificates.ts"

const start = (base: string, certificate: Parameters<typeof curlLine>[0]["certificate"]): string =>
  curlLine({ base, key: "svc_1", model: "m", certificate }).split("/v1/")[0] ?? ""

const served = async (selfSigned: boolean, ...names: ReadonlyArray<string>) => {
  const { cert, key } = await makePair({ names })
  const certificate = checkPair(cert, key, new Date())
  if (isProblem(certificate)) throw new Error(certificate.problem)
  const files = { cert: "/d/cert.pem", key: "/d/key.pem", certVariable: "", keyVariable: "" }
  return { certificate, files, selfSigned }
}

describe("the curl line", () => {
  it("calls an address that is bound to every interface by its loopback address", () => {
    expect(start("http://127.0.0.1:8080", undefined)).toBe("curl http://127.0.0.1:8080")
    expect(start("http://0.0.0.0:8080", undefined)).toBe("curl http://127.0.0.1:8080")
    expect(start("http://[::]:8080", undefined)).toBe("curl http://[::1]:8080")
  })

  it("names a self-signed certificate", async () => {
    const own = await served(true, "localhost", "127.0.0.1")
    expect(start("https://0.0.0.0:1", own)).toBe("curl --cacert /d/cert.pem https://127.0.0.1:1")
    const files = { ...own.files, cert: "/it's here/cert.pem" }
    expect(start("https://0.0.0.0:1", { ...own, files })).toContain(
      "--cacert '/it'\\''s here/cert.pem' https:",
    )
  })

  it("calls a node by a name of its certificate where that is not for the address", async () => {
    const named = await served(false, "*.example.com", "edge.example.com")
    const line = "curl --resolve edge.example.com:1:127.0.0.1 -H 'Host: localhost' https://edge.example.com:1"
    expect(start("https://0.0.0.0:1", named)).toBe(line)
    expect(start("https://[::1]:1", await served(false, "edge.example.com", "::1"))).toBe(
      "curl https://[::1]:1",
    )
    expect(start("https://127.0.0.1:1", await served(false, "*.example.com"))).toBe(
      "curl https://127.0.0.1:1",
    )
  })
})

describe("the line above it", () => {
  it("has the playground's link with the key behind #, at an address that can be called", () => {
    const target = { base: "http://0.0.0.0:8080", key: "svc_a b", model: "m", certificate: undefined }
    expect(readyLine(target)).toBe(
      "ready: playground http://127.0.0.1:8080/#key=svc_a%20b, key svc_a b, and one request to try it:",
    )
  })

  it("has the variable that the operator sets where there is no key", () => {
    const target = { base: "http://127.0.0.1:1", key: undefined, model: "m", certificate: undefined }
    expect(readyLine(target)).toBe(
      "ready: playground http://127.0.0.1:1/, key $KEY, and one request to try it:",
    )
  })
})

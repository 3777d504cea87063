// The link to the playground that the start prints, and that the page reads it back.
import { expect, it } from "vitest"
import { playgroundLink } from "#cli/roles/PlaygroundLink.ts"
import { keyOfFragment } from "../../../src/web/api/Key.js"

it("has the key in the fragment, and an address that a browser can open", () => {
  expect(playgroundLink("http://127.0.0.1:8080", "svc_a1")).toBe("http://127.0.0.1:8080/#key=svc_a1")
  expect(playgroundLink("https://0.0.0.0:8443", "svc_a1")).toBe("https://127.0.0.1:8443/#key=svc_a1")
  expect(playgroundLink("http://[::]:8080", undefined)).toBe("http://[::1]:8080/")
  expect(playgroundLink("http://node.example", undefined)).toBe("http://node.example/")
})

it("is read by the page", () => {
  expect(keyOfFragment(new URL(playgroundLink("http://127.0.0.1:8080", "svc_a1B2")).hash)).toBe("svc_a1B2")
})

// Which paths belong to an entry of the table of paths, and so get 405 in place of 404.
import fc from "fast-check"
import { expect, it } from "vitest"
import { hangUpPath, idOfHangUp, idOfModelPath, knownPathOf, modelPath } from "#http/NotFound.ts"

const paths = { "/v1/models": ["GET"], [modelPath]: ["GET"], [hangUpPath]: ["POST"] }

it("an id is any text in its percent encoding", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (id) => {
      const encoded = encodeURIComponent(id)
      expect(idOfModelPath(`/v1/models/${encoded}`)).toBe(id)
      expect(idOfHangUp(`/v1/realtime/calls/${encoded}/hangup`)).toBe(id)
      expect(knownPathOf(paths, `/v1/realtime/calls/${encoded}/hangup`)).toBe(hangUpPath)
    }),
  )
})

it("a path whose id has an invalid percent encoding belongs to none, because no route takes it", () => {
  for (const wrong of ["%", "%zz", "%ff", "a%"]) {
    expect(knownPathOf(paths, `/v1/models/${wrong}`)).toBe(undefined)
    expect(knownPathOf(paths, `/v1/realtime/calls/${wrong}/hangup`)).toBe(undefined)
  }
})

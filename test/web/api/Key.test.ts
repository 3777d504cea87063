// Keys as people paste them, and in the fragment of the link that a node prints.
import fc from "fast-check"
import { expect, it } from "vitest"
import { cleanKey, keyOfFragment } from "../../../src/web/api/Key.js"

it.each([
  ["  svc_a1B2 ", "spaces"],
  ["svc_a1B2\r\n", "a line end"],
  ["svc_a1\n  B2", "a line that was broken"],
  ['"svc_a1B2"', "quotes"],
  ["'svc_a1B2',", "quotes and a comma"],
  ["“svc_a1B2”", "a mail's quotes"],
  ["`svc_a1B2`", "quotes of a manual"],
  ["\u200bsvc_a1B2\ufeff", "characters without a width"],
  ["Bearer svc_a1B2", "the header's word"],
  ["Authorization: Bearer svc_a1B2", "the header"],
  ["EDGEWISE_API_KEY=svc_a1B2", "a variable"],
  ['export KEY="svc_a1B2"', "a line of a shell"],
])("%j is a key with %s", (pasted) => {
  expect(cleanKey(pasted)).toBe("svc_a1B2")
})

it("leaves every key and session token as it is, and nothing of blanks", () => {
  const character = fc.constantFrom(..."abcXYZ019_-.")
  fc.assert(
    fc.property(fc.array(character, { minLength: 1, maxLength: 60 }), (characters) => {
      expect(cleanKey(characters.join(""))).toBe(characters.join(""))
    }),
  )
  expect(cleanKey(' " " ')).toBe("")
})

it("is found in a fragment, and only there", () => {
  expect(keyOfFragment("#key=svc_a1B2")).toBe("svc_a1B2")
  expect(keyOfFragment("#key=%22svc_a1B2%22%0A")).toBe("svc_a1B2")
  expect(keyOfFragment("#key=svc_100%")).toBe("svc_100%")
  for (const fragment of ["", "#", "#chat", "#key=", "#monkey=svc_a1B2"])
    expect(keyOfFragment(fragment)).toBeUndefined()
})

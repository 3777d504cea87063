// The code that the playground shows: nothing in it can leave its quotes, and it never holds the key.
import { stripTypeScriptTypes } from "node:module"
import fc from "fast-check"
import { expect, it } from "vitest"
import { liveSnippets, pythonValue, snippetsOf } from "../../../src/web/api/Snippets.js"

const base = "http://127.0.0.1:8080/"
const post = (json: unknown) =>
  snippetsOf({ method: "POST", base, path: "/v1/chat/completions", json, answer: "events" })

/** The words of a shell command that uses single and double quotes only. */
const words = (command: string): ReadonlyArray<string> =>
  [...command.replaceAll(/\\\n\s*/g, "").matchAll(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+/g)].map(([word]) =>
    word.replaceAll(
      /'([^']*)'|"([^"]*)"|\\(.)/g,
      (_, single = "", double = "", escaped = "") => single + double + escaped,
    ),
  )

it("curl sends exactly the body, whatever is in it", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      const sent = words(post(json).curl)
      expect(JSON.parse(sent[sent.indexOf("-d") + 1] ?? "")).toEqual(JSON.parse(JSON.stringify(json)))
    }),
  )
})

it("TypeScript is TypeScript, and sends exactly the body", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (json) => {
      const code = post(json).typescript
      stripTypeScriptTypes(code.replaceAll("await ", ""), { mode: "strip" })
      const [, body = ""] = /body: JSON\.stringify\(([\s\S]*)\),\n\}\)/.exec(code) ?? []
      expect(JSON.parse(body)).toEqual(JSON.parse(JSON.stringify(json)))
    }),
  )
})

it("Python spells the values of JSON its own way", () => {
  expect(pythonValue({ a: true, b: null, c: [false, "x"], d: {}, e: [] })).toBe(
    '{\n    "a": True,\n    "b": None,\n    "c": [\n        False,\n        "x",\n    ],\n    "d": {},\n    "e": [],\n}',
  )
})

it("reads the key from the environment", () => {
  const all = [post({ a: 1 }), liveSnippets(base, "/v1/audio/transcriptions/ws?model=x")]
  for (const { python, typescript } of all) {
    expect(python).toContain("os.environ['EDGEWISE_API_KEY']")
    expect(typescript).toContain("process.env.EDGEWISE_API_KEY")
  }
  expect(post({}).curl).toContain("Bearer $EDGEWISE_API_KEY")
  expect(liveSnippets(base, "/ws?a=1").typescript).toContain('"ws://127.0.0.1:8080/ws?a=1"')
})

it("keeps the prefix of a proxy", () => {
  const { curl } = snippetsOf({
    method: "GET",
    base: "https://host/edge/",
    path: "/v1/models",
    answer: "json",
  })
  expect(curl).toBe("curl 'https://host/edge/v1/models' \\\n  -H \"Authorization: Bearer $EDGEWISE_API_KEY\"")
})

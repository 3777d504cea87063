// Which parts of a rendered prompt are the template's and which are the callers'.
import { expect, it } from "vitest"
import { Places } from "#engines/llama/tools/places/Places.ts"
import { Spellings } from "#engines/llama/tools/places/Spellings.ts"

const none = new Spellings([])

it("puts texts into their places and leaves marks of other requests as they are", () => {
  const places = new Places(none, none)
  const other = new Places(none, none)
  const [hello, stranger, farewell] = [places.content("Hello"), other.content("x"), places.content("Bye")]
  const name = hello.slice(0, hello.indexOf(":"))
  expect(places.parts(`<a>${stranger}${hello}${name}${name}?<b>"${farewell}"`)).toEqual([
    { text: `<a>${stranger}`, byTemplate: true },
    { text: "Hello", byTemplate: false },
    { text: `${name}${name}?<b>"`, byTemplate: true },
    { text: "Bye", byTemplate: false },
    { text: '"', byTemplate: true },
  ])
})

it("reads quotation marks of neighbours once, and JSON for a whole string", () => {
  const places = new Places(none, none)
  const [first, second, json] = [places.content("a"), places.content("b"), places.json('{"c":1}')]
  const printed = (mark: string) => JSON.stringify(mark)
  expect(places.parts(`[${printed(first)}${printed(second)},${printed(json)}]`)).toEqual([
    { text: '["', byTemplate: true },
    { text: "a", byTemplate: false },
    { text: '""', byTemplate: true },
    { text: "b", byTemplate: false },
    { text: '",{"c":1}]', byTemplate: true },
  ])
})

it("tokenizes what would become a special token as ordinary text", () => {
  const places = new Places(new Spellings(["<|end|>"]), none)
  const guarded = places.guarded("before <|end|> after")
  expect(places.parts(`<|end|>${guarded}`)).toEqual([
    { text: "<|end|>before <", byTemplate: true },
    { text: "|end|>", byTemplate: false },
    { text: " after", byTemplate: true },
  ])
})

it("keeps a picture a part of its own, between the texts around it", () => {
  const places = new Places(none, none)
  const content = `${places.content("Before")}${places.picture(3)}${places.picture(0)}${places.content("after")}`
  expect(places.parts(`<a>${content}</a>`)).toEqual([
    { text: "<a>", byTemplate: true },
    { text: "Before", byTemplate: false },
    { text: "", byTemplate: true, picture: 3 },
    { text: "", byTemplate: true, picture: 0 },
    { text: "after", byTemplate: false },
    { text: "</a>", byTemplate: true },
  ])
})

it("takes away what the template prints around a value that is no text", () => {
  const places = new Places(none, none)
  const [number, text] = [places.json("1.50", "<q>"), places.text("x")]
  const once = places.json("2", "<q>")
  expect(places.parts(`{a:<q>${number}<q>,b:<q>${text}<q>,c:${once}<q>}`)).toEqual([
    { text: "{a:1.50,b:<q>x<q>,c:2<q>}", byTemplate: true },
  ])
})

// Replies with calls, read as they stream.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { ParsedPiece } from "#engines/llama/tools/readers/CallParser.ts"
import { assembled, contentFor, cuts, inPieces, read, someCalls, syntaxes, tools } from "./Calls.ts"

describe.each(syntaxes)("%s", (_name, syntax) => {
  const startsOnly = syntax.openers[0]?.startsWith("{") === true
  const reply = fc
    .tuple(contentFor(syntax), fc.constantFrom("", "\n", "\n\n", " "), someCalls(syntax), cuts)
    .map(([content, space, calls, at]) => {
      const own = syntax.several ? calls : calls.slice(0, 1)
      const before = startsOnly ? "" : content
      return {
        content: before,
        calls: own,
        text: before + (startsOnly ? "" : space) + syntax.write(own, tools),
        at,
      }
    })

  it("text, names and arguments come back, wherever the reply is cut, and nothing else", () => {
    fc.assert(
      fc.property(reply, ({ content, calls, text, at }) => {
        expect(read(syntax.parser(tools), inPieces(text, at))).toEqual({ content, calls })
      }),
    )
  })

  it("a reply that ends early has given the beginning of what the whole reply gives", () => {
    fc.assert(
      fc.property(reply, fc.double({ min: 0, max: 1, noNaN: true }), ({ text, at }, part) => {
        const whole = read(syntax.parser(tools), [text])
        const begun = read(syntax.parser(tools), inPieces(inPieces(text, [part])[0] ?? "", at), true)
        expect(whole.content.startsWith(begun.content.trimEnd())).toBe(true)
        for (const [index, call] of begun.calls.entries()) {
          expect(call.name).toBe(whole.calls[index]?.name)
          expect(whole.calls[index]?.arguments.startsWith(call.arguments)).toBe(true)
        }
      }),
    )
  })

  it("text without a call comes back whole", () => {
    fc.assert(
      fc.property(contentFor(syntax), fc.constantFrom("", "\n", "  "), cuts, (content, space, at) => {
        fc.pre(!startsOnly || !syntax.openers.some((opener) => content.startsWith(opener)))
        const text = content + space
        expect(read(syntax.parser(tools), inPieces(text, at))).toEqual({ content: text, calls: [] })
      }),
    )
  })

  it("the name is known before the arguments begin, and arguments arrive while they are written", () => {
    const written = syntax.write([{ name: "get_weather", arguments: '{"city": "Rome by night"}' }], tools)
    const parser = syntax.parser(tools)
    const pieces: Array<ParsedPiece> = []
    const upTo = (end: string) => {
      for (const character of written.slice(0, written.indexOf(end) + end.length).slice(taken))
        pieces.push(...parser.push(character))
      taken = written.indexOf(end) + end.length
      return assembled(pieces)
    }
    let taken = 0
    const named = upTo("get_weather")
    expect(named.content).toBe("")
    parser.push(written.slice(taken, taken + 1)).forEach((piece) => pieces.push(piece))
    taken++
    const [begun] = assembled(pieces).calls
    expect(begun?.name).toBe("get_weather")
    expect("{").toContain(begun?.arguments)
    expect(upTo("Rome").calls[0]?.arguments).toBe('{"city": "Rome')
  })

  it("text that only looks like a call gives neither text nor arguments", () => {
    const parser = syntax.parser(tools)
    const opener = syntax.openers[0] ?? ""
    const pieces = [...parser.push(`${opener}\u0000 <x>`), ...parser.push("more"), ...parser.end()]
    expect(assembled(pieces).content).toBe("")
  })
})

describe.each(syntaxes)("%s beside a response format", (_name, syntax) => {
  const parser = () => syntax.parser(tools, true)
  const written = fc
    .tuple(someCalls(syntax))
    .map(([calls]) => syntax.write(syntax.several ? calls : calls.slice(0, 1), tools))
  /** Answers whose keys and texts have openers and whole calls inside. */
  const answer = fc
    .tuple(fc.dictionary(written, written, { maxKeys: 3 }), fc.constantFrom(undefined, "name", "type"))
    .map(([more, key]) => JSON.stringify(key === undefined ? more : { [key]: "function", ...more }))

  it("call syntax inside the texts of an answer is text, wherever the answer is cut", () => {
    fc.assert(
      fc.property(answer, cuts, (text, at) => {
        expect(read(parser(), inPieces(text, at))).toEqual({ content: text, calls: [] })
      }),
    )
  })

  it("an answer that ends early is given up to its end", () => {
    fc.assert(
      fc.property(answer, fc.double({ min: 0, max: 1, noNaN: true }), (text, part) => {
        const begun = inPieces(text, [part])[0] ?? ""
        const { calls, content } = read(parser(), [begun], true)
        expect([calls, begun.startsWith(content)]).toEqual([[], true])
        // What is still the beginning of a call as well is not given.
        if (begun.length > '{"type": "function", "name": "get_weather"'.length) expect(content).toBe(begun)
      }),
    )
  })

  it("a reply of calls is read as calls", () => {
    fc.assert(
      fc.property(someCalls(syntax), cuts, (calls, at) => {
        const own = syntax.several ? calls : calls.slice(0, 1)
        expect(read(parser(), inPieces(syntax.write(own, tools), at))).toEqual({ content: "", calls: own })
      }),
    )
  })
})

it("an answer of a format that begins as a call does is text until a tool and its arguments follow", () => {
  for (const [name, syntax] of syntaxes.filter(([, { openers }]) => openers[0]?.startsWith("{"))) {
    for (const text of [
      '{"name": "Bob", "age": 5}',
      '{"name": "get_weather", "age": 5}',
      '{"name": "get_weather", "parameters": null}',
      '{"name": "',
    ]) {
      expect([name, read(syntax.parser(tools, true), [...text])]).toEqual([
        name,
        { content: text, calls: [] },
      ])
    }
    const called = '{"name": "get_weather", "parameters": {"city": "Rome"}}'
    expect(read(syntax.parser(tools, true), [...called]).calls).toHaveLength(1)
  }
})

it("a reply cut by its length inside an opener does not give the opener's beginning", () => {
  for (const [, syntax] of syntaxes) {
    const begun = (syntax.openers[0] ?? "").slice(0, -1)
    expect(read(syntax.parser(tools), [begun], true).content).toBe("")
    expect(read(syntax.parser(tools), [begun], false).content).toBe(begun)
  }
})

describe("arguments between markers", () => {
  const gemma = syntaxes.find(([name]) => name === "gemma4")?.[1]
  const calls = (text: string) =>
    gemma === undefined ? [] : read(gemma.parser(tools), [...`<|tool_call>call:clock${text}`]).calls

  it("are JSON as far as they are read, one character after the other", () => {
    expect(calls('{at:[1,{b:<|"|>a<|"\n\\"<|"|>}],c:{}}<tool_call|>')).toEqual([
      { name: "clock", arguments: '{"at": [1, {"b": "a<|\\"\\n\\\\\\""}], "c": {}}' },
    ])
    expect(calls('{at:<|"|>half')).toEqual([{ name: "clock", arguments: '{"at": "half' }])
  })

  it("that are something else end the reading", () => {
    for (const broken of ["(at:1)", "{at:'x'}", "{at:1]", "{at:[1}", "{at:1;"])
      expect(calls(broken)[0]?.arguments).not.toMatch(/[x;')]/)
  })
})

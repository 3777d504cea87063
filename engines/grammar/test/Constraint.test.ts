// Constraints of replies: random grammars and vocabularies, and the cases with a name.
import { expect, it } from "@effect/vitest"
import { compile } from "#engines/grammar/compile/Compile.ts"
import type { Expression, ReplyShape } from "#engines/grammar/Expression.ts"
import { BoundGrammar } from "#engines/grammar/match/ReplyConstraint.ts"
import { TokenTrie } from "#engines/grammar/match/TokenTrie.ts"
import { constraintProperties, unmasked, vocabulary } from "./ConstraintProperties.ts"

constraintProperties(50)

const utf8 = new TextEncoder()
const text = (of: string): Expression => ({ kind: "text", text: of })

const words = (...texts: ReadonlyArray<string>): TokenTrie =>
  vocabulary(texts.map((each) => utf8.encode(each)))

const bound = (shape: ReplyShape, trie: TokenTrie, tokenize?: (text: string) => ReadonlyArray<number>) => {
  const made = compile(shape, trie.singleBytes)
  if ("problem" in made) throw new Error(made.problem)
  return new BoundGrammar(made.grammar, trie, tokenize)
}

const shape = (root: Expression, stages: ReplyShape["stages"] = []): ReplyShape => ({
  stages,
  rules: { root, rules: new Map() },
})

/** The tokens of `words` come behind 4 control tokens and 256 bytes. */
const word = (number: number) => 260 + number
const byte = (letter: string) => 4 + letter.charCodeAt(0)

it("finds a marker whose end shares a token with what follows", () => {
  const trie = words("<call", ">{", ">x", "hi ")
  const call = shape(text('{"a":1}'), [{ until: ["<call>"], mayEnd: true }])
  const constraint = bound(call, trie).reply()
  expect(constraint.allows(word(3), 50)).toBe(true)
  // A token without text changes nothing while text is free; end tokens end the reply.
  expect(constraint.allows(1, 50)).toBe(true)
  expect(constraint.allows(0, 50)).toBe(true)
  constraint.accept(1)
  constraint.accept(word(0))
  expect(constraint.allows(word(2), 50)).toBe(false)
  expect(constraint.allows(word(1), 50)).toBe(true)
  // The call needs 7 more tokens, this one included.
  expect(constraint.allows(word(1), 7)).toBe(true)
  expect(constraint.allows(word(1), 6)).toBe(false)
  constraint.accept(word(1))
  expect(constraint.complete()).toBe(false)
  expect(constraint.allows(0, 50)).toBe(false)
  expect(constraint.allows(1, 50)).toBe(false)
  expect(constraint.forced()).toEqual(Array.from('"a":1}', byte))
  expect(unmasked(trie, constraint, 50)).toEqual([byte('"')])
})

it("spells forced text as the tokenizer does, except for what could be longer", () => {
  const trie = words('{"', "name", '":', ' "', '": "', "na")
  const value = { kind: "characters", ranges: [[0x61, 0x7a]] } as const
  const of = shape({ kind: "sequence", of: [text('{"name": '), text('"'), value, text('"}')] })
  const asked: Array<string> = []
  const tokenize = (spelled: string) => {
    asked.push(spelled)
    return [word(0), word(5), byte("m"), byte("e"), word(2), word(3)]
  }
  const constraint = bound(of, trie, tokenize).reply()
  expect(constraint.forced()).toEqual([word(0), word(5), byte("m"), byte("e"), word(2), word(3)])
  expect(asked).toEqual(['{"name": "'])
  // Here ` "a` may follow, so ` "` is left out, and `": "a` too, so `":` is.
  const longer = words('{"', "name", '":', ' "', '": "a', ' "b')
  expect(
    bound(of, longer, () => [word(0), word(1), word(2), word(3)])
      .reply()
      .forced(),
  ).toEqual([word(0), word(1)])
  // A tokenizer that gives other text is not used.
  expect(
    bound(of, trie, () => [word(1)])
      .reply()
      .forced(),
  ).toEqual([word(0), word(1), word(4)])
})

it("refuses a vocabulary that cannot spell the reply, and never ends in a place without a next token", () => {
  const spells = (...texts: ReadonlyArray<string>) => {
    const bytes = texts.map((each) => utf8.encode(each))
    return TokenTrie.of({ size: bytes.length, bytes: (token) => bytes[token]!, isEnd: () => false })
  }
  expect(compile(shape(text("abc")), spells("a", "b").singleBytes)).toEqual({
    problem: "the model's vocabulary cannot spell it",
    rule: "root",
  })
  // `ä` is one token and has no tokens for its bytes: it is allowed whole. `ax` leads to what cannot be spelled.
  const trie = spells("a", "b", "ä", "ax", "ä"[0]!)
  const of = shape({
    kind: "choice",
    of: [text("ab"), text("axy"), { kind: "sequence", of: [text("ä"), text("b")] }],
  })
  const constraint = bound(of, trie).reply()
  expect(unmasked(trie, constraint, 100)).toEqual([0, 2, 4])
})

it("does not steer a reply that had too few tokens from its start", () => {
  const trie = words("aaaa")
  const of = shape({
    kind: "sequence",
    of: [{ kind: "repeat", of: text("a"), least: 0, most: undefined }, text("zzzz")],
  })
  const constraint = bound(of, trie).reply()
  expect(constraint.allows(word(0), 3)).toBe(true)
  expect(constraint.allows(word(0), 4)).toBe(false)
  expect(constraint.allows(byte("z"), 4)).toBe(true)
})

it("keeps one mask for the same place in lists of any depth", () => {
  const trie = words("[[", "]]", "],", '"]', "a]")
  const rules = new Map<string, Expression>([
    [
      "list",
      {
        kind: "sequence",
        of: [
          text("["),
          {
            kind: "choice",
            of: [
              { kind: "rule", name: "list" },
              { kind: "repeat", of: text("a"), least: 0, most: undefined },
            ],
          },
          text("]"),
        ],
      },
    ],
  ])
  const made = bound({ stages: [], rules: { root: { kind: "rule", name: "list" }, rules } }, trie)
  const constraint = made.reply()
  const masks = []
  for (let depth = 0; depth < 3_000; depth++) {
    constraint.accept(byte("["))
    if (depth % 500 === 499) masks.push(unmasked(trie, constraint, 10_000))
  }
  for (const mask of masks) expect(mask).toEqual([byte("["), byte("]"), byte("a"), word(0), word(1), word(4)])
  // 3,000 brackets by pairs, with no tokens to spare.
  expect(constraint.allows(word(0), 1_501)).toBe(false)
  expect(constraint.allows(word(0), 1_502)).toBe(true)
  expect(unmasked(trie, constraint, 1_500)).toEqual([word(1)])
})

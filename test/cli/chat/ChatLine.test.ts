import fc from "fast-check"
import { expect, it } from "vitest"
import { chatCommands, chatHelp, chatLine } from "#cli/chat/ChatLine.ts"
import { receiptLine } from "#cli/chat/ChatOutput.ts"
import { answered, asked, emptyConversation, savedText, sentMessages } from "#cli/chat/Conversation.ts"
import { visible, visibleJson } from "#cli/shared/Output.ts"

it.each([
  ["  ", { kind: "empty" }],
  ["hello", { kind: "message", text: "hello" }],
  ["//etc is a folder", { kind: "message", text: "/etc is a folder" }],
  ["/model owner/name", { kind: "command", name: "model", argument: "owner/name" }],
  ["/system  be brief\nand kind", { kind: "command", name: "system", argument: "be brief\nand kind" }],
  ["/quit", { kind: "command", name: "exit", argument: "" }],
  ["/constructor", { kind: "unknown", name: "constructor" }],
  ["/ clear", { kind: "unknown", name: "" }],
])("%j means %j", (line, meaning) => {
  expect(chatLine(line)).toEqual(meaning)
})

it("helps with every command in lines of at most 100 columns", () => {
  for (const name of Object.keys(chatCommands)) expect(chatHelp.join("\n")).toContain(`/${name}`)
  expect(chatHelp.filter((line) => line.length > 100)).toEqual([])
})

it("a question takes the waiting pictures, and an answer follows it", () => {
  const picture = { name: "a.png", url: "data:image/png;base64,AA==" }
  const first = asked({ ...emptyConversation, system: "be brief", pictures: [picture] }, "what is it?")
  const second = asked(answered(first, "a square"), "sure?")
  expect(sentMessages(second)).toEqual([
    { role: "system", content: "be brief" },
    {
      role: "user",
      content: [
        { type: "text", text: "what is it?" },
        { type: "image_url", image_url: { url: picture.url } },
      ],
    },
    { role: "assistant", content: "a square" },
    { role: "user", content: "sure?" },
  ])
  expect(savedText(second, "a.md")).toBe(
    "## system\n\nbe brief\n\n## user\n\nwhat is it?\n[picture]\n\n## assistant\n\na square\n\n## user\n\nsure?\n",
  )
  expect(JSON.parse(savedText(second, "a.JSON"))).toEqual(sentMessages(second))
})

it("the receipt has what is known", () => {
  const answer = {
    text: "a",
    reasoning: "",
    totalMs: 1_200,
    firstTokenMs: 200,
    completionTokens: 11,
    finishReason: "stop",
  }
  expect(receiptLine(answer)).toBe("first token 0.20 s, 11 tokens in 1.20 s, 10.0 tokens/s")
  expect(receiptLine({ text: "", reasoning: "", totalMs: 30 })).toBe("no text, 0.03 s")
  expect(receiptLine({ ...answer, completionTokens: 1, finishReason: "length", receiptId: "rcpt_1" })).toBe(
    "first token 0.20 s, 1 tokens in 1.20 s, cut at --max-tokens or the context, receipt rcpt_1",
  )
})

it("no text from elsewhere has a control character on the terminal", () => {
  expect(visible("\u001b]0;title\u0007\r\nnext\tline\u009b2J")).toBe("␛]0;title␇\nnext\tline\ufffd2J")
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is sought
  const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(visible(text)).not.toMatch(controls)
      const json = visibleJson({ text })
      expect(json).not.toMatch(controls)
      expect(JSON.parse(json)).toEqual({ text })
    }),
  )
})

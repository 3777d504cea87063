// What the page says of a model: whether it is a demonstration, and how large it is.
import { expect, it } from "vitest"
import { Client } from "../../../src/web/api/Client.js"
import { NodeInfo, sizeText } from "../../../src/web/api/NodeInfo.js"

it("writes sizes in words", () => {
  expect(sizeText(1_033_344)).toBe("1 million parameters")
  expect(sizeText(4_560_000)).toBe("4.6 million parameters")
  expect(sizeText(7_241_732_096)).toBe("7.2 billion parameters")
  expect(sizeText(64_000)).toBe("64 thousand parameters")
  expect(sizeText(undefined)).toBe("")
})

it("tells demonstrations from other models, and says what it knows", () => {
  const info = new NodeInfo(new Client("http://node/", () => ""))
  info.models = [
    { id: "demo", kind: "text", owned_by: "edgewise-demo", parameters: 1_033_344 },
    { id: "voice", kind: "speech", owned_by: "edgewise-demo" },
    { id: "large", kind: "text", owned_by: "acme", parameters: 7_241_732_096 },
    { id: "other", kind: "text", owned_by: "acme" },
  ]
  expect(info.models.map(({ id }) => info.about(id))).toEqual([
    "demonstration model, 1 million parameters",
    "demonstration model",
    "7.2 billion parameters",
    "",
  ])
  expect(info.about("none")).toBe("")
})

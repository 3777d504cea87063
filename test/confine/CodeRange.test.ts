import { expect, it } from "vitest"
import { codeRangeBytes, codeRangeIn } from "#confine/CodeRange.ts"

it("counts the large reservation for code of Node 24 and later, and not the code of Node 22", () => {
  const node24 = [
    "00400000-0074a000 r--p 00000000 fe:00 2229275                            /usr/bin/node",
    "0074a000-03044000 r-xp 0034a000 fe:00 2229275                            /usr/bin/node",
    "7fa354021000-7fa358000000 ---p 00000000 00:00 0 ",
    "7fa35c000000-7fa37bdc0000 rwxp 00000000 00:00 0 ",
    "",
  ].join("\n")
  expect(codeRangeIn(node24)).toBe(0x1bdc0000 + 0x4000000)
  expect(codeRangeIn("7feaac003000-7feaac03f000 rwxp 00000000 00:00 0 \n")).toBe(0)
  expect(codeRangeIn("7fa35c000000-7fa37bdc0000 rwxp 00000000 fe:00 12  /some/library\n")).toBe(0)
})

it("is the same for the whole life of a process", () => {
  expect(codeRangeBytes()).toBe(codeRangeBytes())
  expect(codeRangeBytes()).toBeLessThan(1024 ** 3)
})

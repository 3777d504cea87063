// What the playground remembers over a reload, also where the browser's storage does not work.
import fc from "fast-check"
import { expect, it } from "vitest"
import { Saved } from "../../../src/web/state/Saved.js"

const place = () => {
  const items = new Map<string, string>()
  return {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
    items,
  }
}

it("gives back what was stored", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string()), (value) => {
      const saved = new Saved(place())
      saved.set("fields", value)
      expect(saved.get("fields", {})).toEqual(JSON.parse(JSON.stringify(value)))
    }),
  )
})

it("gives the default for what is missing, damaged or of another type", () => {
  const storage = place()
  const saved = new Saved(storage)
  expect(saved.get("a", "b")).toBe("b")
  for (const text of ["{", "null", "7", "[]"]) {
    storage.items.set("edgewise.a", text)
    expect(saved.get("a", "b")).toBe("b")
    expect(saved.get("a", { c: 1 })).toEqual({ c: 1 })
  }
})

it("forgets where the storage is full, instead of keeping an older value", () => {
  const storage = place()
  const saved = new Saved({
    ...storage,
    setItem: (name, value) => {
      if (value.length > 20) throw new DOMException("full", "QuotaExceededError")
      storage.setItem(name, value)
    },
  })
  saved.set("a", "old")
  saved.set("a", "new ".repeat(10))
  expect(saved.get("a", "none")).toBe("none")
})

it("works without any storage", () => {
  const refuses = () => {
    throw new DOMException("denied", "SecurityError")
  }
  const saved = new Saved({ getItem: refuses, setItem: refuses, removeItem: refuses })
  saved.set("a", 1)
  saved.remove("a")
  expect(saved.get("a", 2)).toBe(2)
})

// The property of both damage tests: every damaged picture is a picture or is refused, by decoders that live on.
import fc from "fast-check"
import { expect } from "vitest"
import { damaged } from "./Mutations.ts"
import { startPictures } from "./PictureHarness.ts"

export const expectNoCrash = async (count: number): Promise<void> => {
  const pictures = await startPictures()
  const outcomes = new Map<string, number>()
  try {
    await fc.assert(
      fc.asyncProperty(damaged, async (bytes) => {
        const outcome = await pictures.decode(bytes, 10_000)
        const kind = typeof outcome === "string" ? (outcome.split(":")[0] ?? "") : "seen"
        outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
        // Not: Died, Hung, Spool.
        expect(["seen", "BadPicture", "TooCostly"]).toContain(kind)
        if (typeof outcome !== "string") expect(outcome.rgb.length).toBe(outcome.width * outcome.height * 3)
      }),
      { numRuns: count, endOnFailure: true },
    )
  } finally {
    await pictures.stop()
  }
  // The damage is neither always harmless nor always fatal.
  expect(outcomes.get("seen") ?? 0).toBeGreaterThan(count / 50)
  expect(outcomes.get("BadPicture") ?? 0).toBeGreaterThan(count / 10)
}

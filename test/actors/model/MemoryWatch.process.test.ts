// The memory of decoder processes counts as the node's, for the levels of memory pressure and in what operators see.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { decoderPids, heldByNode, privateOfNode } from "#actors/model/MemoryWatch.ts"
import { Decoder } from "#audio/Decoder.ts"
import { chirp, wavBytes } from "../../support/audio/AudioFiles.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-held-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it.live("a decoder's memory counts as the node's", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const file = join(folder, "file")
      writeFileSync(file, wavBytes(chirp(16_000, 16_000), 16_000, "16"))
      expect((yield* decoderPids)()).toEqual([])
      yield* (yield* Decoder).decode(file)
      const pids = (yield* decoderPids)()
      expect(pids).toHaveLength(1)
      const mebibyte = 1024 * 1024
      expect(heldByNode([], pids) - heldByNode([], [])).toBeGreaterThan(40 * mebibyte)
      expect(privateOfNode([], pids) - privateOfNode([], [])).toBeGreaterThan(10 * mebibyte)
    }),
  ).pipe(Effect.provide(Decoder.layer())),
)

// The file of the operator token: for its owner alone whatever the umask, new at each start, gone at the end.
import { lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { keepOperatorToken, operatorTokenFile } from "#store/accounts/OperatorToken.ts"
import { tempDir } from "../TempDir.ts"

const modeOf = (file: string): string => (statSync(file).mode & 0o777).toString(8)

it.effect("has mode 600 under a umask that takes nothing away, and is removed at the end", () =>
  Effect.gen(function* () {
    const dir = yield* tempDir
    const file = operatorTokenFile(dir)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const umask = process.umask(0)
        yield* Effect.ensuring(
          keepOperatorToken(dir, "op_1_x"),
          Effect.sync(() => process.umask(umask)),
        )
        expect([modeOf(file), readFileSync(file, "utf8")]).toEqual(["600", "op_1_x\n"])
      }),
    )
    expect(readdirSync(dir)).toEqual([])
  }),
)

it.effect("takes over neither the mode nor the link of a file that is there", () =>
  Effect.gen(function* () {
    const dir = yield* tempDir
    const file = operatorTokenFile(dir)
    const elsewhere = join(dir, "elsewhere")
    writeFileSync(elsewhere, "other", { mode: 0o644 })
    symlinkSync(elsewhere, file)
    // A node that was killed while it wrote.
    writeFileSync(`${file}.new`, "half", { mode: 0o666 })
    yield* keepOperatorToken(dir, "op_1_y")
    expect([lstatSync(file).isSymbolicLink(), modeOf(file), readFileSync(file, "utf8")]).toEqual([
      false,
      "600",
      "op_1_y\n",
    ])
    expect(readFileSync(elsewhere, "utf8")).toBe("other")
    yield* keepOperatorToken(dir, "op_1_z")
    expect(readFileSync(file, "utf8")).toBe("op_1_z\n")
  }),
)

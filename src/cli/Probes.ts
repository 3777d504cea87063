// Whether a node could write where its data are to be and listen where it is to listen, tried without leaving anything.
import { existsSync, mkdirSync, rmdirSync, statSync, unlinkSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { databaseFileProblem, problemOf } from "#store/DataDir.ts"

/** The directories that have to be made for `dir`, the outermost first. */
const missingOf = (dir: string): ReadonlyArray<string> =>
  existsSync(dir) || dirname(dir) === dir ? [] : [...missingOf(dirname(dir)), dir]

const probe = (dir: string): void => {
  const made: Array<string> = []
  try {
    for (const missing of missingOf(dir)) {
      mkdirSync(missing, { mode: 0o700 })
      made.unshift(missing)
    }
    const file = join(dir, `.check-${process.pid}`)
    writeFileSync(file, "edgewise")
    unlinkSync(file)
  } finally {
    // Not by force: what another process has put there meanwhile stays.
    for (const empty of made) {
      try {
        rmdirSync(empty)
      } catch {
        break
      }
    }
  }
}

/** What is wrong with the data directory, or undefined. One that is not there is made and removed again. */
export const dataDirProblem = (dir: string): Effect.Effect<string | undefined> =>
  Effect.sync(() => {
    try {
      if (existsSync(dir) && !statSync(dir).isDirectory()) return `${dir}: is a file, not a directory`
      probe(dir)
      return databaseFileProblem(dir)
    } catch (cause) {
      return `${dir}: ${problemOf(cause)}`
    }
  })

/** Why the address cannot be bound, or undefined. */
export const portProblem = (host: string, port: number): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    const server = createServer()
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const address = `${host}:${port}`
      resume(
        Effect.succeed(
          cause.code === "EADDRINUSE"
            ? `${address} is in use by another process`
            : `${address} cannot be bound (${cause.code ?? cause.message})`,
        ),
      )
    })
    server.listen({ host, port, exclusive: true }, () =>
      server.close(() => resume(Effect.succeed(undefined))),
    )
  })

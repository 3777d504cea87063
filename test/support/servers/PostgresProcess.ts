// A PostgreSQL server for tests and benches: Debian's programs with a temporary folder, on a free port of 127.0.0.1, with a password. It
// runs until `remove` is called. `initdb` refuses to run as root, so under root it runs as the system's user `postgres`, or as `nobody`
// where that is missing.
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import postgres from "postgres"
import { postgresPrograms } from "../groups/Needs.ts"
import { freePort } from "./FreePort.ts"

/** The user that the server runs as; undefined: the user of this process. */
const serverUser = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync("/etc/passwd", "utf8").split("\n")
  const found = ["postgres:", "nobody:"]
    .map((name) => users.find((line) => line.startsWith(name)))
    .find(Boolean)
  const [, , uid, gid] = (found ?? "").split(":")
  if (uid === undefined || gid === undefined) throw new Error("no user that is not root")
  return { uid: Number(uid), gid: Number(gid) }
}

/** The password, which must not appear in a log or an error. */
export const databasePassword = "pa55w0rd-not-to-be-seen"

export interface PostgresServer {
  readonly port: number
  /** The address of a new, empty database in this server. */
  readonly freshUrl: () => Promise<string>
  /** Kills the server like a crash: connections get no message. */
  readonly kill: () => Promise<void>
  /** Starts the server again with the same data. */
  readonly start: () => Promise<void>
  /** Stops the server and removes its files. */
  readonly remove: () => Promise<void>
}

/** `more`: settings, which replace those that every server has. */
export const runPostgres = async (more: ReadonlyArray<string> = []): Promise<PostgresServer> => {
  const bin = postgresPrograms
  if (bin === undefined) throw new Error("no Postgres on this machine")
  const user = serverUser()
  const dir = mkdtempSync(join(tmpdir(), "edgewise-postgres-"))
  const data = join(dir, "data")
  const passwordFile = join(dir, "password")
  writeFileSync(passwordFile, databasePassword)
  if (user !== undefined) for (const path of [dir, passwordFile]) chownSync(path, user.uid, user.gid)
  const initdb = ["-D", data, "-U", "edgewise", "-A", "scram-sha-256", "--pwfile", passwordFile, "-E", "UTF8"]
  await promisify(execFile)(join(bin, "initdb"), [...initdb, "--no-locale", "--no-sync"], {
    cwd: dir,
    ...user,
  })
  const settings = [
    "fsync=off",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=60",
    ...more,
  ]

  let server: ChildProcess | undefined
  const killNow = () => void server?.kill("SIGQUIT")
  process.once("exit", killNow)

  let port = await freePort()
  const start = async (): Promise<void> => {
    const args = ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])]
    const child = spawn(join(bin, "postgres"), args, {
      cwd: dir,
      stdio: ["ignore", "ignore", "pipe"],
      ...user,
    })
    server = child
    let said = ""
    await new Promise<void>((resolve, reject) => {
      child.once("exit", () => reject(new Error(`Postgres did not start: ${said}`)))
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        said = (said + text).slice(-10_000)
        if (said.includes("ready to accept connections")) resolve()
      })
    })
  }

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const child = server
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, "exit")
    child.kill(signal)
    await exited
  }

  // Another server may have taken the port in the meantime.
  for (let attempt = 1; ; attempt++) {
    try {
      await start()
      break
    } catch (error) {
      if (attempt === 5) throw error
      port = await freePort()
    }
  }
  const url = `postgres://edgewise:${databasePassword}@127.0.0.1:${port}/postgres`
  let places = 0
  return {
    port,
    freshUrl: async () => {
      const place = `place_${process.pid}_${++places}`
      const sql = postgres(url, { max: 1, onnotice: () => {} })
      await sql.unsafe(`CREATE SCHEMA ${place}`)
      await sql.end()
      return `${url}?search_path=${place}`
    },
    kill: () => end("SIGQUIT"),
    start,
    remove: async () => {
      process.removeListener("exit", killNow)
      await end("SIGQUIT")
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

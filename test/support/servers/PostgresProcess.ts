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
import { childrenRunning, signalIfRunning } from "../process/ChildProcesses.ts"
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

/** One server process and its data folder. */
interface Running {
  readonly start: () => Promise<void>
  readonly end: (signal: NodeJS.Signals) => Promise<void>
  /** Sends a signal to the server and all its processes. */
  readonly signal: (signal: NodeJS.Signals) => void
}

export interface PostgresServer {
  readonly port: number
  /** The address of a new, empty database in this server. */
  readonly freshUrl: () => Promise<string>
  /** Kills the server like a crash: connections get no message. */
  readonly kill: () => Promise<void>
  /** Starts the server again with the same data. */
  readonly start: () => Promise<void>
  /** Stops all its processes where they are: connections stay open, and nothing answers. */
  readonly freeze: () => void
  readonly thaw: () => void
  /** Begins a standby for which commits wait from now on. It ends with this server. */
  readonly standby: () => Promise<Standby>
  /** Stops the server and removes its files. */
  readonly remove: () => Promise<void>
}

interface Standby {
  readonly port: number
  /** Makes it take writes, which it does when this completes. */
  readonly promote: () => Promise<void>
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
  const program = (name: string, args: ReadonlyArray<string>) =>
    promisify(execFile)(join(bin, name), [...args], {
      cwd: dir,
      env: { ...process.env, PGPASSWORD: databasePassword },
      ...user,
    })
  const initdb = ["-D", data, "-U", "edgewise", "-A", "scram-sha-256", "--pwfile", passwordFile, "-E", "UTF8"]
  await program("initdb", [...initdb, "--no-locale", "--no-sync"])
  const settings = [
    "fsync=off",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=60",
    ...more,
  ]

  const servers = new Set<ChildProcess>()
  const killNow = () => {
    for (const server of servers) server.kill("SIGQUIT")
  }
  process.once("exit", killNow)

  const serverOn = (folder: string, portNow: () => number): Running => {
    let server: ChildProcess | undefined
    const start = async (): Promise<void> => {
      const args = ["-D", folder, "-p", String(portNow()), ...settings.flatMap((setting) => ["-c", setting])]
      const child = spawn(join(bin, "postgres"), args, {
        cwd: dir,
        stdio: ["ignore", "ignore", "pipe"],
        ...user,
      })
      server = child
      servers.add(child)
      child.once("exit", () => servers.delete(child))
      let said = ""
      await new Promise<void>((resolve, reject) => {
        child.once("exit", () => reject(new Error(`Postgres did not start: ${said}`)))
        child.stderr.setEncoding("utf8").on("data", (text: string) => {
          said = (said + text).slice(-10_000)
          if (/ready to accept (read-only )?connections/.test(said)) resolve()
        })
      })
    }
    const signal = (which: NodeJS.Signals) => {
      if (server?.pid === undefined) return
      server.kill(which)
      // Each of its processes is in a session of its own, so no signal to a group reaches them. One may end meanwhile.
      for (const pid of childrenRunning("postgres", server.pid)) signalIfRunning(pid, which)
    }
    const end = async (which: NodeJS.Signals): Promise<void> => {
      const child = server
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, "exit")
      // It may be frozen.
      signal("SIGCONT")
      child.kill(which)
      await exited
    }
    return { start, end, signal }
  }

  let port = await freePort()
  const primary = serverOn(data, () => port)
  // Another server may have taken the port in the meantime.
  for (let attempt = 1; ; attempt++) {
    try {
      await primary.start()
      break
    } catch (error) {
      if (attempt === 5) throw error
      port = await freePort()
    }
  }
  const urlOf = (at: number) => `postgres://edgewise:${databasePassword}@127.0.0.1:${at}/postgres`
  const url = urlOf(port)
  const ask = async (at: number, ...statements: ReadonlyArray<string>): Promise<void> => {
    const sql = postgres(urlOf(at), { max: 1, onnotice: () => {} })
    for (const statement of statements) await sql.unsafe(statement)
    await sql.end()
  }
  let places = 0
  let standbys = 0
  const standbyServers: Array<Running> = []
  return {
    port,
    freshUrl: async () => {
      const place = `place_${process.pid}_${++places}`
      await ask(port, `CREATE SCHEMA ${place}`)
      return `${url}?search_path=${place}`
    },
    kill: () => primary.end("SIGQUIT"),
    start: primary.start,
    freeze: () => primary.signal("SIGSTOP"),
    thaw: () => primary.signal("SIGCONT"),
    standby: async () => {
      const folder = join(dir, `standby${++standbys}`)
      const source = ["-h", "127.0.0.1", "-p", String(port), "-U", "edgewise"]
      await program("pg_basebackup", ["-D", folder, "-R", "-c", "fast", "--no-sync", ...source])
      const at = await freePort()
      const server = serverOn(folder, () => at)
      standbyServers.push(server)
      await server.start()
      await ask(port, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
      // The copy of the configuration was made before the line that has commits wait.
      return { port: at, promote: () => ask(at, "SELECT pg_promote()") }
    },
    remove: async () => {
      process.removeListener("exit", killNow)
      for (const server of [...standbyServers, primary]) await server.end("SIGQUIT")
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

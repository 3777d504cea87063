// The program as a child process with the same files and terminal, whose exit status this process takes. A node
// (`edgewise serve`) is started again when it crashes, unless a service manager or a container's runtime does that. Plain
// JavaScript for Node 20 and later, as edgewise.js. The node says over their channel that it listens, and that it was told to
// stop; src/cli/roles/Launcher.ts is its side. If this process is killed, the channel closes and the node drains.
import { existsSync } from "node:fs"
import { constants } from "node:os"
import { isatty } from "node:tty"

/** Restart intensity: so many restarts inside a period that slides. Guesses; a start of the node takes about a second. */
const intensity = 5
const periodMs = 60_000

/** What a node printed last is awaited for this long: another process may hold its pipe open. A guess. */
const lastLinesMs = 50
/** Lines and characters that are kept: enough for V8's report of a full heap, which is 30 lines. */
const keptLines = 40
const keptCharacters = 300

/** Where the node writes its log: this process's standard error, under another number. */
const logDescriptor = 4

/** Marks of containers: Docker, Podman, and the variables that systemd-nspawn, Podman and Kubernetes set. */
const isContainer = (env) =>
  process.pid === 1 ||
  ["/.dockerenv", "/run/.containerenv"].some((path) => existsSync(path)) ||
  [env.container, env.KUBERNETES_SERVICE_HOST].some((value) => value !== undefined && value !== "")

/** A desktop's terminal is a service of systemd too, and passes these variables on. */
const isService = (env) =>
  [env.INVOCATION_ID, env.NOTIFY_SOCKET].some((value) => value !== undefined && value !== "") &&
  ![0, 1, 2].some((descriptor) => isatty(descriptor))

/** The value of EDGEWISE_RESTART or of its flag, which wins. Wrong values are refused by the node. */
const settingOf = (args, env) => {
  const at = args.findLastIndex((arg) => arg === "--restart" || arg.startsWith("--restart="))
  if (at === -1) return env.EDGEWISE_RESTART ?? ""
  return args[at].includes("=") ? args[at].slice(args[at].indexOf("=") + 1) : (args[at + 1] ?? "")
}

/** Whether this command line runs a node that is started again here when it crashes. */
export const restarts = (args, env) => {
  if (args[0] !== "serve") return false
  const setting = settingOf(args, env)
  return setting === "true" || (setting !== "false" && !isContainer(env) && !isService(env))
}

/** Copies what arrives on `stream` to standard error, and keeps the last lines. */
const lastLines = (stream) => {
  let lines = []
  let open = ""
  stream.setEncoding("utf8").on("data", (text) => {
    process.stderr.write(text)
    const found = (open + text).split("\n").map((line) => line.slice(0, keptCharacters))
    open = found.pop()
    lines = [...lines, ...found].slice(-keptLines)
  })
  stream.on("error", () => {})
  return () => [...lines, open].filter((line) => line.trim() !== "").slice(-keptLines)
}

/**
 * @param args the program's command line
 * @param spawnMain starts the program with further options of `spawn`
 * @param onError the program could not be started
 * @returns to be called with each signal, and whether to send it to the child
 */
export const runChild = (args, spawnMain, onError) => {
  const isKept = restarts(args, process.env)
  let child
  /** Ports by role, as the node reported them: a port that the system chose stays the same. */
  let ports = {}
  let hasListened = false
  let isStopping = false
  /** Times of crashes within the period. */
  let crashesAtMs = []

  /** Ends this process once its output has been taken: `process.exit` drops what a pipe of 64 KiB has no room for. */
  const finish = (code, signal, reason) => {
    const end = () => process.exit(code ?? 128 + (constants.signals[signal] ?? 0))
    process.stderr.on("error", end)
    process.stderr.write(reason === undefined ? "" : `edgewise: ${reason}\n`, end)
  }

  /** @param crash facts of the node that this one follows, for its log */
  const start = (crash) => {
    let isListening = false
    const launcher = { log: logDescriptor, ports, crash: crash?.(performance.now()) }
    child = spawnMain(
      isKept
        ? {
            stdio: ["inherit", "inherit", "pipe", "ipc", 2],
            env: { ...process.env, EDGEWISE_LAUNCHER: JSON.stringify(launcher) },
          }
        : { stdio: "inherit" },
    )
    const printed = isKept ? lastLines(child.stderr) : () => []
    child.once("error", (error) => {
      if (child.pid === undefined) onError(error)
    })
    child.on("message", (message) => {
      if (message.stopping === true) isStopping = true
      if (message.listening === undefined) return
      isListening = true
      hasListened = true
      ports = message.listening
    })
    const ended = (code, signal, endedMs) => {
      const end = signal ?? `exit status ${code}`
      if (code === 0 || isStopping || !hasListened) return finish(code, signal)
      // What a node refuses at its start, a setting or a port, it would refuse again. A signal says nothing about that.
      if (signal === null && !isListening)
        return finish(code, signal, `the node was started again and ended before it listened (${end})`)
      crashesAtMs = [...crashesAtMs, endedMs].filter((at) => endedMs - at < periodMs)
      const crashes = crashesAtMs.length
      if (crashes > intensity)
        return finish(
          code,
          signal,
          `the node crashed ${crashes} times within ${periodMs / 1_000} s, last with ${end}: it is not started again`,
        )
      start((startMs) => ({ end, restarts: crashes, afterMs: Math.round((startMs - endedMs) * 10) / 10, lines: printed() }))
    }
    child.once("exit", (code, signal) => {
      const endedMs = performance.now()
      // `close` comes when its last lines have been read.
      const read = () => {
        clearTimeout(overdue)
        child.removeListener("close", read)
        ended(code, signal, endedMs)
      }
      const overdue = setTimeout(read, lastLinesMs)
      child.once("close", read)
    })
  }
  start()
  return (signal, isSent) => {
    if (signal === "SIGINT" || signal === "SIGTERM") isStopping = true
    if (isSent) child.kill(signal)
  }
}

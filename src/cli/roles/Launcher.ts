// The node's side of the process that starts it again when it crashes (bin/child.js): what it is told, and what it hears of
// the node's end. Without that process nothing here has an effect.
import { createServer } from "node:net"
import { Effect } from "effect"
import { launcher } from "#config/OtherVariables.ts"
import type { Config } from "#config/Settings.ts"
import type { Role } from "#config/settings/ListenerSettings.ts"
import type { LogEvent } from "#domain/process/OperatorLog.ts"
import { exceptionReason } from "#domain/process/PlainLine.ts"

type News =
  /** The node serves; from now on a crash is followed by a restart. Ports by role. */
  | { readonly listening: Readonly<Partial<Record<Role, number>>> }
  /** It was told to stop: however it ends, it is not started again. */
  | { readonly stopping: true }

export const tellLauncher = (news: News): void => {
  if (launcher() !== undefined && process.connected) process.send?.(news, undefined, undefined, () => {})
}

/** Calls `stop` when that process has ended, e.g. by SIGKILL: the node would go on without the operator's command. */
export const onLauncherGone = (stop: () => void): void => {
  if (launcher() === undefined || process.send === undefined) return
  process.once("disconnect", stop)
  if (!process.connected) stop()
}

/** A port that is free now; 0 if there is none at this address, which listening then reports. */
const freePort = (host: string): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once("error", () => resolve(0))
    server.listen({ host, port: 0, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/**
 * Free ports instead of port 0, for a node that may be started again: those of before its crash, else new ones. uWebSockets.js
 * does not set SO_REUSEADDR where the system chooses the port, and then it could not be bound again for a minute.
 */
export const withFixedPorts = async (config: Config): Promise<Config> => {
  const known = launcher()?.ports
  if (known === undefined) return config
  const fixed = async (role: Role, port: number): Promise<number> =>
    port !== 0 || !config.roles.includes(role) ? port : (known[role] ?? (await freePort(config.host)))
  return {
    ...config,
    port: await fixed("edge", config.port),
    authPort: await fixed("auth", config.authPort),
    routerPort: await fixed("router", config.routerPort),
  }
}

/** Logs the crash that this start follows. Its lines may quote what a caller sent, as reasons of exceptions may. */
export const reportCrash: Effect.Effect<void> = Effect.suspend(() => {
  const crash = launcher()?.crash
  if (crash === undefined) return Effect.void
  const { afterMs, end, lines, restarts } = crash
  // Not by `report`, which would cut its lines to one of 300 characters.
  return Effect.logError("node crashed and started again" satisfies LogEvent).pipe(
    Effect.annotateLogs({
      end,
      restarts,
      started_after_ms: afterMs,
      last_lines: lines.map(exceptionReason).join("\n"),
    }),
  )
})

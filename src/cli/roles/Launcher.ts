// The node's side of the process that starts it again when it crashes (bin/child.js): what it is told, and what it hears of
// the node's end. Without that process nothing here has an effect.
import { randomInt } from "node:crypto"
import { Effect } from "effect"
import { launcher } from "#config/OtherVariables.ts"
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

/** Below the range from which systems choose ports themselves, which begins at 32,768 on Linux. A guess where to begin. */
const lowestPort = 20_000
const highestPort = 32_000

/**
 * The port of a role's listener. In place of 0, for a node that may be started again: that of before its crash, else random ports, of which
 * the listener takes the first that is free. uWebSockets.js does not set SO_REUSEADDR where the system chooses the port, and then it
 * could not be bound again for a minute.
 */
export const portFor = (role: Role, port: number): number | (() => number) => {
  const known = launcher()?.ports
  if (port !== 0 || known === undefined) return port
  return known[role] ?? (() => randomInt(lowestPort, highestPort))
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

// Loaded into a node with `--import` when a bench starts it: serves the probe's commands over the IPC channel. The
// node's own code does not know of it.
import { serveCommands } from "./CommandChannel.ts"
import { probe } from "./Probe.ts"

serveCommands(probe)
// The open channel must not keep a drained node alive.
process.channel?.unref()

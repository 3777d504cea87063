// Loaded into a node with `--import` when a bench starts it: answers the probe's questions over the IPC channel, and
// leaves the node alone otherwise. The node's own code knows nothing of it.
import { keepDesk } from "./Desk.ts"
import { probe } from "./Probe.ts"

keepDesk(probe)
// The channel must not keep a node alive that has drained.
process.channel?.unref()

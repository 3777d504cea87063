// The operations suites: memory that unloaded models leave, and the effect of loads, restarts and slow clients on others.
import { oneSection } from "../support/Suite.ts"
import { controlLoop } from "./ControlLoop.ts"
import { loadCycles } from "./Cycles.ts"
import { restarts } from "./Restart.ts"
import { slowClients } from "./SlowClients.ts"

/** 100 cycles of eight models: five minutes. */
export const cyclesSuite = oneSection("cycles", "memory", ({ quick }) => loadCycles(quick ? 5 : 100))

/** A minute. */
export const controlSuite = oneSection("control", "loop", ({ quick }) => controlLoop(quick ? 2 : 10))

/** Ten starts and as many restarts: a minute. */
export const restartSuite = oneSection("restart", "restart", ({ quick }) => restarts(quick ? 2 : 10))

/** Three attacks of 40 s. */
export const slowClientsSuite = oneSection("slow-clients", "others", () => slowClients())

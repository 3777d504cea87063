// The load client of a bench, in a process of its own.
import { type Child, startChild } from "./Child.ts"
import type { LoadClientCommands } from "./loadClientMain.ts"

export type LoadClient = Child<LoadClientCommands>

export const startLoadClient = startChild<LoadClientCommands>({
  name: "load client",
  entry: new URL("./loadClientMain.ts", import.meta.url),
})

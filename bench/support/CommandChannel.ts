// The commands that a bench's child process serves over its IPC channel: an object of functions, each running one
// call at a time. This is the child's side; Child.ts is the parent's.

/** Functions of one plain-data argument. Results are sent back by structured clone. */
export type Commands = Readonly<Record<string, (argument: never) => unknown>>

export interface Command {
  readonly id: number
  readonly name: string
  readonly argument: unknown
}

export type Reply = { readonly id: number } & ({ readonly value: unknown } | { readonly error: string })

const isCommand = (message: unknown): message is Command =>
  typeof message === "object" && message !== null && "id" in message && "name" in message

/** Serves commands until the process ends. Ends it when the bench disconnects, so that no child outlives a bench. */
export const serveCommands = (commands: Commands): void => {
  process.on("disconnect", () => process.exit(1))
  process.on("message", async (message: unknown) => {
    if (!isCommand(message)) return
    const { argument, id, name } = message
    let reply: Reply
    try {
      reply = { id, value: await commands[name]?.(argument as never) }
    } catch (cause) {
      reply = { id, error: cause instanceof Error ? cause.message : String(cause) }
    }
    process.send?.(reply)
  })
}

// The questions a bench's child process answers over its IPC channel: a desk is an object of functions, one question
// at a time each. This is the child's side; Child.ts is the other. Knows no question.

/** Functions of one plain-data argument; what they return travels back by structured clone. */
export type Desk = Readonly<Record<string, (argument: never) => unknown>>

export interface Question {
  readonly id: number
  readonly name: string
  readonly argument: unknown
}

export type Reply = { readonly id: number } & ({ readonly value: unknown } | { readonly error: string })

const isQuestion = (message: unknown): message is Question =>
  typeof message === "object" && message !== null && "id" in message && "name" in message

/** Answers questions until the process ends. Ends it when the bench goes away, so that nothing outlives a bench. */
export const keepDesk = (desk: Desk): void => {
  process.on("disconnect", () => process.exit(1))
  process.on("message", async (message: unknown) => {
    if (!isQuestion(message)) return
    const { argument, id, name } = message
    let reply: Reply
    try {
      reply = { id, value: await desk[name]?.(argument as never) }
    } catch (cause) {
      reply = { id, error: cause instanceof Error ? cause.message : String(cause) }
    }
    process.send?.(reply)
  })
}

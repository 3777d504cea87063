// Starts a child process of a bench and sends it commands. This is the parent's side of the command channel.
// Closing the scope asks the child to end, and kills it if it does not.
import { fork } from "node:child_process"
import { Effect, Schema, type Scope } from "effect"
import type { Command, Commands, Reply } from "./CommandChannel.ts"

export class ChildFailed extends Schema.TaggedError<ChildFailed>()("ChildFailed", {
  child: Schema.String,
  detail: Schema.String,
}) {
  override get message(): string {
    return `${this.child}: ${this.detail}`
  }
}

export interface Child<D extends Commands> {
  readonly pid: number
  readonly ask: <Name extends keyof D & string>(
    name: Name,
    ...argument: Parameters<D[Name]>
  ) => Effect.Effect<Awaited<ReturnType<D[Name]>>, ChildFailed>
  /** Fails when the child has ended. */
  readonly died: Effect.Effect<never, ChildFailed>
  /** Waits for a matching line of standard output. Fails if the child ends first. */
  readonly line: (pattern: RegExp) => Effect.Effect<RegExpExecArray, ChildFailed>
  /** The last 16 KB of its standard output, and of its standard error. */
  readonly output: Effect.Effect<string>
}

interface ChildOptions {
  /** The child's name in errors. */
  readonly name: string
  readonly entry: URL
  readonly args?: ReadonlyArray<string>
  readonly nodeFlags?: ReadonlyArray<string>
  readonly env?: NodeJS.ProcessEnv
}

/** Milliseconds until a child that was asked to end is killed. A guess: an idle node needs a tenth of it. */
const politeMs = 5_000
const keptCharacters = 16 * 1024

/** Milliseconds until a command counts as stuck; none needs half of it. */
const patienceMs = 180_000

class RunningChild<D extends Commands> implements Child<D> {
  readonly #name: string
  readonly #process
  readonly #asked = new Map<number, (reply: Reply) => void>()
  readonly #waiting = new Set<() => void>()
  readonly #exited: Promise<void>
  #out = ""
  #err = ""
  #nextId = 1
  #dead: string | undefined

  constructor({ args, entry, env, name, nodeFlags }: ChildOptions) {
    this.#name = name
    const child = fork(entry, args ?? [], {
      serialization: "advanced",
      execArgv: ["--disable-warning=ExperimentalWarning", ...(nodeFlags ?? [])],
      env: env ?? process.env,
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    })
    this.#process = child
    child.stdout?.on("data", (text: Buffer) => {
      this.#out = (this.#out + text.toString()).slice(-keptCharacters)
      this.#wake()
    })
    child.stderr?.on("data", (text: Buffer) => {
      this.#err = (this.#err + text.toString()).slice(-keptCharacters)
    })
    child.on("message", (message) => {
      const reply = message as Reply
      this.#asked.get(reply.id)?.(reply)
      this.#asked.delete(reply.id)
    })
    this.#exited = new Promise((resolve) => {
      const ended = (how: string) => {
        this.#dead = how
        for (const [id, answer] of this.#asked) answer({ id, error: how })
        this.#asked.clear()
        this.#wake()
        resolve()
      }
      child.on("exit", (code, signal) =>
        ended(`ended with ${signal ?? `status ${code}`}: ${this.#err.trim()}`),
      )
      child.on("error", (cause) => ended(cause.message))
    })
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  readonly died: Effect.Effect<never, ChildFailed> = Effect.suspend(() =>
    Effect.andThen(
      Effect.promise(() => this.#exited),
      Effect.suspend(() => Effect.fail(this.#failed(this.#dead ?? "ended"))),
    ),
  )

  readonly ask: Child<D>["ask"] = (name, ...argument) => this.#soon(name, this.#ask(name, argument[0]))

  #ask<A>(name: string, argument: unknown): Effect.Effect<A, ChildFailed> {
    return Effect.callback((resume) => {
      if (this.#dead !== undefined) return resume(Effect.fail(this.#failed(this.#dead)))
      const id = this.#nextId++
      this.#asked.set(id, (reply) =>
        resume(
          "error" in reply ? Effect.fail(this.#failed(reply.error)) : Effect.succeed(reply.value as never),
        ),
      )
      const command: Command = { id, name, argument }
      // If the child is dying, its exit event reports it.
      this.#process.send(command, undefined, undefined, () => {})
      return Effect.sync(() => this.#asked.delete(id))
    })
  }

  #soon<A>(what: string, effect: Effect.Effect<A, ChildFailed>): Effect.Effect<A, ChildFailed> {
    return Effect.timeoutOrElse(effect, {
      duration: patienceMs,
      orElse: () => Effect.fail(this.#failed(`${what}: no answer in ${patienceMs} ms`)),
    })
  }

  readonly line = (pattern: RegExp): Effect.Effect<RegExpExecArray, ChildFailed> =>
    this.#soon(`a line like ${pattern}`, this.#line(pattern))

  readonly output: Effect.Effect<string> = Effect.sync(() => `${this.#out}\n${this.#err}`)

  #line(pattern: RegExp): Effect.Effect<RegExpExecArray, ChildFailed> {
    return Effect.callback((resume) => {
      const look = () => {
        const match = pattern.exec(this.#out)
        if (match !== null) resume(Effect.succeed(match))
        else if (this.#dead !== undefined) resume(Effect.fail(this.#failed(this.#dead)))
        else return
        this.#waiting.delete(look)
      }
      this.#waiting.add(look)
      look()
      return Effect.sync(() => this.#waiting.delete(look))
    })
  }

  readonly stop: Effect.Effect<void> = Effect.promise(async () => {
    if (this.#dead !== undefined) return
    this.#process.kill("SIGTERM")
    const killing = setTimeout(() => this.#process.kill("SIGKILL"), politeMs)
    await this.#exited
    clearTimeout(killing)
  })

  #failed(detail: string): ChildFailed {
    return new ChildFailed({ child: this.#name, detail })
  }

  #wake(): void {
    for (const look of this.#waiting) look()
  }
}

/** `D` is the type of the commands that `entry` serves. */
export const startChild = <D extends Commands>(
  options: ChildOptions,
): Effect.Effect<Child<D>, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new RunningChild<D>(options)),
    (child) => child.stop,
  )

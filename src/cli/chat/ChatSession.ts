// The state of a chat in the terminal, and what each line does to it.
import { writeFileSync } from "node:fs"
import { Effect, Exit } from "effect"
import { localFailure, type NodeAccess } from "../shared/NodeClient.ts"
import { answerSoFar, type ChatOptions, stream } from "./Answer.ts"
import { type ChatCommandName, chatHelp } from "./ChatLine.ts"
import { type ChatModel, chosenModel } from "./ChatModels.ts"
import { type ChatOutput, receiptLine } from "./ChatOutput.ts"
import { answered, asked, type Conversation, savedText, sentMessages } from "./Conversation.ts"
import { priceOf } from "./Price.ts"
import { readPicture } from "./ReadPicture.ts"

interface SessionStart {
  readonly access: NodeAccess
  readonly models: ReadonlyArray<ChatModel>
  readonly model: ChatModel
  readonly options: Omit<ChatOptions, "model">
  readonly conversation: Conversation
  readonly output: ChatOutput
}

export class ChatSession {
  readonly #start: SessionStart
  #model: ChatModel
  #conversation: Conversation

  constructor(start: SessionStart) {
    this.#start = start
    this.#model = start.model
    this.#conversation = start.conversation
  }

  /**
   * Asks the model and prints its answer. Interrupted, it keeps what has arrived: the next question then refers to what can be
   * read on the terminal. A question that fails is forgotten.
   */
  ask(text: string): Effect.Effect<void> {
    const { access, options, output } = this.#start
    const before = this.#conversation
    const question = asked(before, text)
    return Effect.gen({ self: this }, function* () {
      const soFar = yield* answerSoFar(output)
      const keep = () => {
        output.endAnswer()
        this.#conversation = soFar.text === "" ? before : answered(question, soFar.text)
      }
      const exit = yield* stream(
        access,
        { ...options, model: this.#model.id },
        sentMessages(question),
        soFar,
      ).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            keep()
            output.note(`stopped after ${soFar.text.length} characters`)
          }),
        ),
        Effect.exit,
      )
      if (Exit.isSuccess(exit)) {
        keep()
        output.note(receiptLine(soFar.answer, yield* priceOf(access, soFar.receiptId)))
        return
      }
      output.endAnswer()
      yield* Effect.catch(Effect.failCause(exit.cause), (refused) =>
        Effect.sync(() => output.problem(refused.message)),
      )
    })
  }

  run(name: Exclude<ChatCommandName, "exit">, argument: string): Effect.Effect<void> {
    const { output } = this.#start
    return Effect.catch(this.#perform(name, argument), (refused) =>
      Effect.sync(() => output.problem(refused.message)),
    )
  }

  readonly #perform = Effect.fnUntraced(
    { self: this as ChatSession },
    function* (this: ChatSession, name: Exclude<ChatCommandName, "exit">, argument: string) {
      const { models, output } = this.#start
      switch (name) {
        case "help":
          for (const line of chatHelp) output.note(line)
          return
        case "model": {
          if (argument === "") {
            for (const { id, sees } of models) {
              output.note(`${id === this.#model.id ? "*" : " "} ${id}${sees ? " (takes pictures)" : ""}`)
            }
            return
          }
          if (!models.some(({ id }) => id === argument)) {
            return yield* localFailure(`${argument} is no text model of this node; /model shows them`)
          }
          this.#model = yield* chosenModel(models, argument)
          output.note(`going on with ${argument}`)
          return
        }
        case "system":
          if (argument !== "") {
            this.#conversation = { ...this.#conversation, system: argument === "-" ? "" : argument }
          }
          output.note(
            this.#conversation.system === "" ? "no system message" : `system: ${this.#conversation.system}`,
          )
          return
        case "clear":
          this.#conversation = { ...this.#conversation, messages: [], pictures: [] }
          output.note("the conversation is forgotten")
          return
        case "image": {
          if (argument === "") return yield* localFailure("/image needs the path of a file")
          if (!this.#model.sees)
            return yield* localFailure(`${this.#model.id} takes no pictures; /model shows which do`)
          const picture = yield* readPicture(argument)
          const { pictures } = this.#conversation
          this.#conversation = { ...this.#conversation, pictures: [...pictures, picture] }
          output.note(`${picture.name} goes with the next message`)
          return
        }
        case "save": {
          if (argument === "") return yield* localFailure("/save needs the path of a file")
          yield* Effect.try({
            // An existing file is never replaced.
            try: () => writeFileSync(argument, savedText(this.#conversation, argument), { flag: "wx" }),
            catch: localFailure,
          })
          output.note(`saved in ${argument}`)
          return
        }
      }
    },
  )
}

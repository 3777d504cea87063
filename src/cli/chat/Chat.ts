// `edgewise chat`: a conversation with a text model of a running node, in the terminal; or one question from an argument or a pipe.
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { interrupted, localFailure, type NodeAccess, nodeAccess, nodeFlags } from "../shared/NodeClient.ts"
import { jsonFlag, textFlag, visibleJson, wrongUsage } from "../shared/Output.ts"
import { answerSoFar, type ChatOptions, stream } from "./Answer.ts"
import { chatModels, chosenModel } from "./ChatModels.ts"
import { ChatOutput, receiptLine } from "./ChatOutput.ts"
import { ChatSession } from "./ChatSession.ts"
import { asked, type Conversation, emptyConversation, sentMessages } from "./Conversation.ts"
import { priceOf } from "./Price.ts"
import { readPicture } from "./ReadPicture.ts"
import { repl } from "./Repl.ts"

/** Longest text of a pipe: what a body may have (protocol 17.1). */
const largestPromptBytes = 8_000_000

const pipedText = Effect.tryPromise({
  try: async () => {
    const chunks: Array<Buffer> = []
    let sizeBytes = 0
    for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length
      if (sizeBytes > largestPromptBytes)
        throw new Error(`the prompt is longer than ${largestPromptBytes} bytes`)
      chunks.push(chunk)
    }
    return Buffer.concat(chunks).toString("utf8").trim()
  },
  catch: localFailure,
})

const silent = { onText: () => {}, onReasoning: () => {} }

/** One question and its answer. */
const oneAnswer = Effect.fnUntraced(function* (
  access: NodeAccess,
  options: ChatOptions,
  question: Conversation,
  json: boolean,
) {
  const output = new ChatOutput(process.stdout, process.stderr)
  const soFar = yield* answerSoFar(json ? silent : output)
  const work = stream(access, options, sentMessages(question), soFar).pipe(
    Effect.ensuring(Effect.sync(() => output.endAnswer())),
  )
  yield* Effect.raceFirst(work, interrupted)
  const { answer } = soFar
  const microDollars = yield* priceOf(access, answer.receiptId)
  if (!json) return output.note(receiptLine(answer, microDollars))
  const { completionTokens, finishReason, firstTokenMs, promptTokens, reasoning, receiptId, text, totalMs } =
    answer
  yield* Console.log(
    visibleJson({
      model: options.model,
      text,
      ...(reasoning === "" ? {} : { reasoning }),
      finish_reason: finishReason ?? null,
      prompt_tokens: promptTokens ?? null,
      completion_tokens: completionTokens ?? null,
      first_token_ms: firstTokenMs ?? null,
      total_ms: totalMs,
      micro_dollars: microDollars ?? null,
      receipt_id: receiptId ?? null,
    }),
  )
})

export const chat = Command.make(
  "chat",
  {
    prompt: Argument.String("PROMPT").pipe(
      Argument.withDescription(
        "One question; without it, a conversation on a terminal, or the text of a pipe",
      ),
      Argument.optional,
    ),
    model: textFlag("model", "ID", "Model that answers; default: the first text model of the node"),
    system: Flag.String("system").pipe(
      Flag.withMetavar("TEXT"),
      Flag.withDescription("System message; default: none"),
      Flag.withDefault(""),
    ),
    image: textFlag(
      "image",
      "FILE",
      "Picture for the first message, if the model sees: PNG, JPEG, WebP, GIF or BMP; default: none",
    ),
    maxTokens: Flag.Int("max-tokens").pipe(
      Flag.withMetavar("TOKENS"),
      Flag.withDescription("Longest answer, 1 to 4096 tokens; default: 1024"),
      Flag.withDefault(1_024),
    ),
    temperature: Flag.Finite("temperature").pipe(
      Flag.withMetavar("NUMBER"),
      Flag.withDescription("0 to 2; 0 always takes the likeliest token; default: the node's, 0.7"),
      Flag.optional,
    ),
    effort: Flag.Literals("effort", ["none", "minimal", "low", "medium", "high", "xhigh", "max"]).pipe(
      Flag.withDescription("How long the model may think before it answers, if it can; default: none"),
      Flag.optional,
    ),
    json: jsonFlag,
    ...nodeFlags,
  },
  Effect.fn(function* ({ effort, image, json, key, maxTokens, model, prompt, system, temperature, url }) {
    const isConversation = Option.isNone(prompt) && process.stdin.isTTY === true
    if (isConversation && json) {
      return yield* wrongUsage(["chat"], "--json needs one question: PROMPT, or a text from a pipe")
    }
    const access = yield* nodeAccess({ url, key })
    const text = isConversation ? "" : Option.isSome(prompt) ? prompt.value : yield* pipedText
    if (!isConversation && text.trim() === "") return yield* wrongUsage(["chat"], "the question is empty")
    const pictures = Option.isSome(image) ? [yield* readPicture(image.value)] : []
    const models = yield* chatModels(access)
    const chosen = yield* chosenModel(models, Option.getOrUndefined(model))
    if (pictures.length > 0 && !chosen.sees) {
      return yield* localFailure(`${chosen.id} takes no pictures`)
    }
    const options = {
      maxTokens,
      temperature: Option.getOrUndefined(temperature),
      effort: Option.getOrUndefined(effort),
    }
    const conversation = { ...emptyConversation, system, pictures }
    if (!isConversation) {
      return yield* oneAnswer(access, { ...options, model: chosen.id }, asked(conversation, text), json)
    }
    const output = new ChatOutput(process.stdout, process.stderr)
    output.note(`${chosen.id} at ${access.base.origin}; /help shows the commands`)
    const session = new ChatSession({ access, models, model: chosen, options, conversation, output })
    yield* repl(session, output, { input: process.stdin, drawing: process.stdout, terminal: true })
  }),
).pipe(Command.withDescription("Chat with a model of a running node, or ask it one question"))

// The fake engine's behaviour for one request: a script, as plain data, inside the prompt. A prompt whose last user
// message starts with `fake:` followed by JSON is a script; any other prompt gets the defaults. Timings and failures are
// properties of the request, so tests and benches need no other interface.
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { withDefault } from "#domain/models/EntrySchemas.ts"
import { textOf, textPromptsOf } from "../protocol/Contents.ts"
import type { ChatTurn, GenerateRequest } from "../protocol/Engine.ts"
import { withoutReplacement } from "../shared/text/Utf8Holdback.ts"
import { count } from "./Options.ts"

const units = Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.String)])

const Script = Schema.Struct({
  /** Text units to produce, unless maxTokens ends the reply earlier. Default 16, or 0 in a script with calls. */
  tokens: Schema.optionalKey(count),
  /** Text of one unit; a list is repeated in order. */
  text: withDefault(units, " token"),
  /** Thoughts before the text, one unit or several, for requests that allow thinking. */
  reasoning: Schema.optionalKey(units),
  /** Calls after the text, for requests with tools. `arguments` is JSON, or a text that is sent as it stands. */
  calls: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.String, arguments: Schema.Unknown }))),
  /** Whole texts of the replies of a request with several, instead of `text`. */
  replies: Schema.optionalKey(Schema.NonEmptyArray(Schema.String)),
  /** The text is the request as JSON, without its prompt. */
  request: Schema.optionalKey(Schema.Boolean),
  /**
   * Scripts of a conversation: the first answers the message that holds them, the next one the message after that answer,
   * and so on. The last one is repeated. So an agent can be led through several calls.
   */
  steps: Schema.optionalKey(Schema.NonEmptyArray(Schema.Unknown)),
  /** Prompt tokens that count as kept from an earlier request. */
  cachedTokens: withDefault(count, 0),
  /** Refuses the request like an engine that cannot compile a schema; with `failAt` like one that cannot hold a reply to it. */
  refuses: Schema.optionalKey(Schema.Struct({ field: Schema.String, detail: Schema.String })),
  /** Milliseconds between decode steps; 0 is one step a tick of the event loop. */
  tokenMs: withDefault(count, 0),
  /** Milliseconds before the first unit. */
  prefillMs: withDefault(count, 0),
  /** Milliseconds for which the event loop blocks before the first unit, announced as an opening of files. */
  openingMs: withDefault(count, 0),
  /** Milliseconds of processor time that a blocking call takes before the first unit. */
  computeMs: withDefault(count, 0),
  /** Unit index before which the request fails with a typed error. */
  failAt: Schema.optionalKey(count),
  /** Unit index before which the process dies as by a fault in native code (SIGSEGV). */
  crashAt: Schema.optionalKey(count),
  /** Unit index before which the engine blocks its event loop for ever. */
  hangAt: Schema.optionalKey(count),
  /**
   * Unit index before which the reply waits for a signal SIGUSR2 to the engine's process: for what has to happen while it
   * runs, which no delay holds up for long enough on every machine. The signal is looked for every `tokenMs`, from 1 up.
   */
  signalAt: Schema.optionalKey(count),
})

export interface FakeScript extends Schema.Schema.Type<typeof Script> {
  /** False for the defaults of a prompt without a script. */
  readonly isScript: boolean
}

const decodeText = Schema.decodeUnknownOption(Schema.fromJsonString(Script))
const decode = Schema.decodeUnknownOption(Script)
const defaults: FakeScript = { ...Option.getOrThrow(decode({})), isScript: false }

/** The script of a text, or the defaults; with `steps` the one for the conversation so far. */
const scriptIn = (text: string, answers: number): FakeScript => {
  const script = text.startsWith("fake:") ? decodeText(text.slice("fake:".length)) : Option.none()
  if (Option.isNone(script)) return defaults
  const { steps } = script.value
  if (steps === undefined) return { ...script.value, isScript: true }
  const step = decode(steps[Math.min(answers, steps.length - 1)])
  return Option.isNone(step) ? defaults : { ...step.value, isScript: true }
}

const isFromUser = ({ role }: ChatTurn): boolean => role === "user"

/** The script inside a prompt, or the defaults. */
export const scriptOf = ({ prompt }: GenerateRequest): FakeScript => {
  if (!("turns" in prompt)) {
    const [text] = textPromptsOf(prompt)
    return scriptIn(typeof text === "string" ? text : "", 0)
  }
  const at = prompt.turns.findLastIndex(isFromUser)
  // A conversation without a user's message may hold its script in the only message that there is.
  const turn = at < 0 ? prompt.turns.at(-1) : prompt.turns[at]
  const answers = prompt.turns.slice(at + 1).filter(({ role }) => role === "assistant").length
  return scriptIn(textOf(turn?.content ?? ""), answers)
}

/** Whole characters only, as from every engine: lone surrogates and U+FFFD are removed. */
export const wholeCharacters = (text: string): string => withoutReplacement(text.toWellFormed())

export const unitText = (script: FakeScript, index: number): string =>
  wholeCharacters(typeof script.text === "string" ? script.text : script.text[index % script.text.length]!)

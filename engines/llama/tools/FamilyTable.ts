// The table of known model families: the syntax of each one's tool calls, and texts that its templates contain. RecogniseFamily.ts takes the
// first row whose texts a template contains and whose syntax the template uses when it renders examples. So the order of the rows
// matters, and two rows may have the same texts, as `glm` and `glm-4.7` do.
import { generalCalls } from "./GeneralForm.ts"
import type { CallSyntax } from "./syntax/CallSyntax.ts"
import { jsonCalls } from "./syntax/JsonCalls.ts"
import { typedParameters } from "./syntax/TypedParameters.ts"
import { xmlCalls } from "./syntax/XmlCalls.ts"

interface KnownFamily {
  readonly name: string
  readonly syntax: CallSyntax
  /** All of these texts are in every template of the family. Templates of other families may have them too. */
  readonly knownBy: ReadonlyArray<string>
}

const mistralMarkers = ["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"]

/** Mistral's templates want ids of nine letters or digits. They are numbered, so that they need not be sampled. */
const mistralId = (call: number): string => `call${String(call).padStart(5, "0")}`

const deepSeekMarkers = [
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁call▁begin｜>",
  "<｜tool▁sep｜>",
  "<｜tool▁call▁end｜>",
  "<｜tool▁calls▁end｜>",
]

const kimiMarkers = [
  "<|tool_calls_section_begin|>",
  "<|tool_call_begin|>",
  "<|tool_call_argument_begin|>",
  "<|tool_call_end|>",
  "<|tool_calls_section_end|>",
]

const hermesMarkers = ["<tool_call>", "</tool_call>"]
const glmMarkers = [...hermesMarkers, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"]

const qwenXml = {
  opener: "<tool_call>",
  head: "\n<function=",
  afterName: ">\n",
  parameter: "<parameter=",
  afterKey: ">\n",
  closer: "\n</parameter>",
  afterValue: "\n",
  tail: "</function>\n</tool_call>",
  next: "\n<tool_call>\n<function=",
}

/** GLM 4.5 and 4.6. */
const glm = {
  opener: "<tool_call>",
  head: "",
  afterName: "\n",
  parameter: "<arg_key>",
  afterKey: "</arg_key>\n<arg_value>",
  closer: "</arg_value>",
  afterValue: "\n",
  tail: "</tool_call>",
  next: "\n<tool_call>",
}

/** GLM 4.7: the same without line breaks. */
const glmCompact = {
  ...glm,
  afterName: "",
  afterKey: "</arg_key><arg_value>",
  afterValue: "",
  next: "<tool_call>",
}

/** Gemma's calls: `opener` and `call:name{key:<marker>text<marker>,other:3}` and `close`. */
const gemmaCalls = (
  [opener, close, marker]: readonly [opener: string, close: string, marker: string],
  more: Pick<CallSyntax, "result" | "ends">,
) =>
  jsonCalls({
    openers: [opener],
    head: "call:",
    middle: "",
    tail: close,
    next: `${opener}call:`,
    close: "",
    markers: [opener, close, marker],
    marker,
    parameters: typedParameters,
    ...more,
  })

const gemma4 = gemmaCalls(["<|tool_call>", "<tool_call|>", '<|"|>'], {
  result: (name, text) => `<|tool_response>response:${name}{value:<|"|>${text}<|"|>}<tool_response|>`,
})

/** The model goes on with the marker of a result, which llama.cpp does not take for an end. */
const functionGemma = gemmaCalls(["<start_function_call>", "<end_function_call>", "<escape>"], {
  ends: ["<start_function_response>"],
})

export const knownFamilies: ReadonlyArray<KnownFamily> = [
  { name: "gemma4", knownBy: ["<|tool_call>"], syntax: gemma4 },
  { name: "functiongemma", knownBy: ["<start_function_call>"], syntax: functionGemma },
  {
    name: "deepseek-r1",
    knownBy: ["<｜tool▁calls▁begin｜>", "```json"],
    syntax: jsonCalls({
      openers: ["<｜tool▁calls▁begin｜>"],
      head: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
      middle: "\n```json\n",
      tail: "\n```<｜tool▁call▁end｜>",
      next: "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
      close: "<｜tool▁calls▁end｜>",
      markers: deepSeekMarkers,
    }),
  },
  {
    name: "deepseek-v3.1",
    knownBy: ["<｜tool▁calls▁begin｜>"],
    syntax: jsonCalls({
      openers: ["<｜tool▁calls▁begin｜>"],
      head: "<｜tool▁call▁begin｜>",
      middle: "<｜tool▁sep｜>",
      tail: "<｜tool▁call▁end｜>",
      next: "<｜tool▁call▁begin｜>",
      close: "<｜tool▁calls▁end｜>",
      markers: deepSeekMarkers,
    }),
  },
  {
    name: "mistral-call-id",
    knownBy: ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
    syntax: jsonCalls({
      openers: ["[TOOL_CALLS]"],
      head: "",
      middle: (call) => `[CALL_ID]${mistralId(call)}[ARGS]`,
      tail: "",
      next: "[TOOL_CALLS]",
      close: "",
      markers: mistralMarkers,
      idOf: mistralId,
    }),
  },
  {
    name: "mistral-args",
    knownBy: ["[TOOL_CALLS]", "[ARGS]"],
    syntax: jsonCalls({
      openers: ["[TOOL_CALLS]"],
      head: "",
      middle: "[ARGS]",
      tail: "",
      next: "[TOOL_CALLS]",
      close: "",
      markers: mistralMarkers,
      idOf: mistralId,
    }),
  },
  {
    name: "mistral",
    knownBy: ["[TOOL_CALLS]"],
    syntax: jsonCalls({
      openers: ["[TOOL_CALLS]"],
      head: '[{"name": "',
      middle: '", "arguments": ',
      tail: (call) => `, "id": "${mistralId(call)}"}`,
      next: ', {"name": "',
      close: "]",
      markers: mistralMarkers,
      idOf: mistralId,
    }),
  },
  {
    name: "kimi",
    knownBy: ["<|tool_calls_section_begin|>"],
    syntax: jsonCalls({
      openers: ["<|tool_calls_section_begin|>"],
      head: "<|tool_call_begin|>functions.",
      beforeNumber: ":",
      middle: "<|tool_call_argument_begin|>",
      tail: "<|tool_call_end|>",
      next: "<|tool_call_begin|>functions.",
      close: "<|tool_calls_section_end|>",
      markers: kimiMarkers,
      idOf: (call, name) => `functions.${name}:${call}`,
    }),
  },
  { name: "qwen-xml", knownBy: ["<tool_call>", "<function="], syntax: xmlCalls(qwenXml, hermesMarkers) },
  { name: "glm", knownBy: ["<tool_call>", "<arg_key>"], syntax: xmlCalls(glm, glmMarkers) },
  { name: "glm-4.7", knownBy: ["<tool_call>", "<arg_key>"], syntax: xmlCalls(glmCompact, glmMarkers) },
  { name: "hermes", knownBy: ["<tool_call>"], syntax: generalCalls },
  {
    name: "llama3",
    knownBy: ["<|start_header_id|>", '"parameters": '],
    syntax: jsonCalls({
      // Some Llama models copy `"type": "function"` from the definitions.
      openers: ['{"name": "', '{"type": "function", "name": "'],
      atStart: true,
      head: "",
      middle: '", "parameters": ',
      tail: "}",
      close: "",
    }),
  },
]

// What a reader of the API reference can send at once: the document's operations get bodies and parameters with the models that this
// node has. Pure.
import type { ModelKind } from "#domain/models/ModelEntry.ts"

/** What of a node's models examples are made from. */
export interface ExampleModel {
  readonly id: string
  readonly kind: ModelKind | "conversation"
  /** Preset voices of a speech model. */
  readonly voices: ReadonlyArray<string>
}

interface Parameter {
  readonly name: string
}
interface Operation {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, object>> }
}
/** The parts of an OpenAPI document that are read here. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
}

interface Example {
  readonly body?: object
  readonly parameters?: Readonly<Record<string, string>>
}

/** What README asks first, too. */
const question = "What is the capital of Italy?"

/** By method and path. An operation whose kind of model the node lacks has none. */
const examplesOf = (models: ReadonlyArray<ExampleModel>): Readonly<Record<string, Example | undefined>> => {
  const first = (kind: ExampleModel["kind"]) => models.find((model) => model.kind === kind)
  const text = first("text")?.id
  const embedding = first("embedding")?.id
  const hears = first("transcription")?.id
  const speaks = models.find(({ kind, voices }) => kind === "speech" && voices.length > 0)
  const any = models.find(({ kind }) => kind !== "conversation")?.id
  const talks = first("conversation")?.id ?? text
  const ofText = (body: object) => (text === undefined ? undefined : { body: { model: text, ...body } })
  const ofAny = any === undefined ? undefined : { body: { model_name: any } }
  return {
    "post /v1/chat/completions": ofText({ messages: [{ role: "user", content: question }], temperature: 0 }),
    "post /v1/completions": ofText({ prompt: "Once upon a time", max_tokens: 40 }),
    "post /v1/responses": ofText({ input: question, temperature: 0 }),
    "post /v1/embeddings":
      embedding === undefined ? undefined : { body: { model: embedding, input: "A fox in the forest" } },
    "post /v1/audio/speech":
      speaks === undefined
        ? undefined
        : {
            body: {
              model: speaks.id,
              voice: speaks.voices[0],
              input: "Please open the window.",
              response_format: "wav",
            },
          },
    "get /v1/audio/voices": speaks === undefined ? undefined : { parameters: { model: speaks.id } },
    "post /v1/audio/transcriptions":
      hears === undefined ? undefined : { parameters: { model: hears, sync: "true" } },
    "get /v1/models/{id}": any === undefined ? undefined : { parameters: { id: any } },
    "get /v1/models/logs": any === undefined ? undefined : { parameters: { model: any } },
    "post /v1/models/load": ofAny,
    "post /v1/models/unload": ofAny,
    "post /v1/realtime/client_secrets":
      talks === undefined ? undefined : { body: { session: { type: "realtime", model: talks } } },
  }
}

const withExample = (operation: Operation, { body, parameters = {} }: Example): Operation => ({
  ...operation,
  ...(operation.parameters === undefined
    ? {}
    : {
        parameters: operation.parameters.map((parameter) => {
          const example = parameters[parameter.name]
          return example === undefined ? parameter : { ...parameter, example }
        }),
      }),
  ...(operation.requestBody === undefined || body === undefined
    ? {}
    : {
        requestBody: {
          ...operation.requestBody,
          content: Object.fromEntries(
            Object.entries(operation.requestBody.content).map(([type, content]) => [
              type,
              { ...content, examples: { works: { summary: "Works on this node", value: body } } },
            ]),
          ),
        },
      }),
})

/** The document with examples for the models that there are. */
export const withExamples = <D extends Document>(document: D, models: ReadonlyArray<ExampleModel>): D => {
  const examples = examplesOf(models)
  const paths = Object.entries(document.paths).map(([path, methods]) => [
    path,
    Object.fromEntries(
      Object.entries(methods).map(([method, operation]) => {
        const example = examples[`${method} ${path}`]
        return [method, example === undefined ? operation : withExample(operation, example)]
      }),
    ),
  ])
  return { ...document, paths: Object.fromEntries(paths) }
}

// The text models of a node, as a chat offers them.
import { Effect, Schema } from "effect"
import { localFailure, type NodeAccess } from "../shared/NodeClient.ts"
import { getText, replyReader } from "../shared/NodeReplies.ts"

/** The fields that a chat reads. A server that is not edgewise has no `input_modalities`. */
const ModelList = Schema.Struct({
  data: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      input_modalities: Schema.optionalKey(Schema.Array(Schema.String)),
    }),
  ),
})

export interface ChatModel {
  readonly id: string
  readonly sees: boolean
}

const readList = replyReader(ModelList, "a list of models")

/**
 * The models of the node that generate text, in the catalog's order. Those are the models with `input_modalities`. If no model of the
 * list has them, the server is not edgewise: then all models are returned, because any of them may generate text.
 */
export const chatModels = Effect.fnUntraced(function* (access: NodeAccess) {
  const { data } = yield* Effect.flatMap(getText(access, "/v1/models"), readList)
  const marked = data.filter(({ input_modalities }) => input_modalities !== undefined)
  return (marked.length === 0 ? data : marked).map(
    ({ id, input_modalities }): ChatModel => ({ id, sees: input_modalities?.includes("image") === true }),
  )
}, Effect.scoped)

/** The model of this name; without a name, the first. A name that is not in the list may be an alias, so it is sent to the node as it is. */
export const chosenModel = Effect.fnUntraced(function* (
  models: ReadonlyArray<ChatModel>,
  name: string | undefined,
) {
  if (name !== undefined) return models.find(({ id }) => id === name) ?? { id: name, sees: true }
  const [first] = models
  return first ?? (yield* localFailure("the node has no model that generates text"))
})

// What a client of a conversation sends besides its session: audio, items, answers. Schemas.
import { Schema } from "effect"
import { optional, textUpTo } from "../wire/text/Fields.ts"
import { GivenItem, ItemId } from "./Items.ts"
import {
  Instructions,
  MaxOutputTokens,
  OutputModalities,
  SessionChange,
  ToolChoice,
  Tools,
  Voice,
} from "./Settings.ts"

export const SessionUpdate = Schema.Struct({ session: SessionChange })

export const ItemCreate = Schema.Struct({ previous_item_id: optional(ItemId), item: GivenItem })

/** An id that names an item or an answer. Generous: those of the server and of clients have at most 64 characters. */
const namedId = textUpTo(256)

/** Of `conversation.item.retrieve` and `conversation.item.delete`. */
export const ItemNamed = Schema.Struct({ item_id: namedId })

export const ItemTruncate = Schema.Struct({
  item_id: namedId,
  content_index: Schema.Literal(0).annotate({ message: "must be 0" }),
  audio_end_ms: Schema.Finite.check(
    Schema.isGreaterThanOrEqualTo(0, { message: "must not be negative" }),
  ).annotate({ message: "must be a number" }),
})

/** Key and value pairs that come back with the answer. OpenAI's limits. */
const Metadata = Schema.Record(
  Schema.String.check(Schema.isMaxLength(64)),
  Schema.String.check(Schema.isMaxLength(512)),
).check(Schema.makeFilter((pairs) => Object.keys(pairs).length <= 16 || "must be at most 16 pairs", {}))

const ItemReference = Schema.Struct({ type: Schema.Literal("item_reference"), id: namedId })

/** Items of an answer's own input. A guess. */
const maxInput = 256

export const ResponseCreate = Schema.Struct({
  response: optional(
    Schema.Struct({
      output_modalities: optional(OutputModalities),
      instructions: optional(Instructions),
      tools: optional(Tools),
      tool_choice: optional(ToolChoice),
      max_output_tokens: optional(MaxOutputTokens),
      audio: optional(Schema.Struct({ output: optional(Schema.Struct({ voice: optional(Voice) })) })),
      /** `none`: the answer stands outside of the conversation. */
      conversation: optional(Schema.Literals(["auto", "none"]).annotate({ message: "must be auto or none" })),
      metadata: optional(Metadata),
      input: optional(
        Schema.Array(Schema.Union([ItemReference, GivenItem])).check(
          Schema.isMaxLength(maxInput, { message: `must be at most ${maxInput} items` }),
        ),
      ),
    }),
  ),
})
export type ResponseCreate = NonNullable<(typeof ResponseCreate.Type)["response"]>

export const ResponseCancel = Schema.Struct({ response_id: optional(namedId) })

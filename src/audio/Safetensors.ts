// Reads the safetensors format: eight bytes with the length of a JSON header, the header, then the values of all tensors. Only
// float32, which the built-in files have. Pure.
import { Schema } from "effect"

const Header = Schema.fromJsonString(
  Schema.Record(
    Schema.String,
    Schema.Struct({
      dtype: Schema.Literal("F32"),
      shape: Schema.Array(Schema.Int),
      /** First byte behind the header, and the one behind the last. */
      data_offsets: Schema.Tuple([Schema.Int, Schema.Int]),
    }),
  ),
)
const decode = Schema.decodeUnknownSync(Header)

/** The values of each tensor by its name; throws on a file of another format. */
export const tensorsOf = (bytes: Uint8Array): ReadonlyMap<string, Float32Array> => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const start = 8 + Number(view.getBigUint64(0, true))
  const header = decode(new TextDecoder().decode(bytes.subarray(8, start)))
  return new Map(
    Object.entries(header).map(
      ([
        name,
        {
          data_offsets: [from, to],
        },
      ]) => {
        const values = new Float32Array((to - from) / 4)
        for (let i = 0; i < values.length; i++) values[i] = view.getFloat32(start + from + 4 * i, true)
        return [name, values]
      },
    ),
  )
}

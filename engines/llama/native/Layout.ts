// The structs that llama.cpp's C interface passes by value, in the layout of its release v0.4.0: names and types in the order
// of `llama.h`, and the defaults that the library returns for two of them. `differences` detects a library of another
// release before any call with a struct. A test compares the names with the header.

/** A field's C type as koffi names it. All pointers are `void *`; an `enum` is an `int32`. */
type FieldType = "void *" | "int32" | "uint32" | "float" | "bool" | "size_t"

export type Fields = Readonly<Record<string, FieldType>>

/** Each field's type and the default that the library returns. */
type Struct = Readonly<Record<string, readonly [type: FieldType, byDefault: number | boolean | null]>>

/** A field's value in a call. Typed arrays and addresses stand for pointers. */
type Value = number | bigint | boolean | null
export type Values<S extends Struct> = { readonly [Name in keyof S]: Value }

export const release = "v0.4.0"

export const modelParams = {
  devices: ["void *", null],
  tensor_buft_overrides: ["void *", null],
  n_gpu_layers: ["int32", -1],
  split_mode: ["int32", 1],
  load_mode: ["int32", -1],
  lazy_mode: ["int32", 1],
  main_gpu: ["int32", 0],
  tensor_split: ["void *", null],
  progress_callback: ["void *", null],
  progress_callback_user_data: ["void *", null],
  kv_overrides: ["void *", null],
  vocab_only: ["bool", false],
  check_tensors: ["bool", false],
  use_extra_bufts: ["bool", true],
  no_host: ["bool", false],
  no_alloc: ["bool", false],
  load_mtp: ["bool", false],
} as const satisfies Struct

export const contextParams = {
  n_ctx: ["uint32", 512],
  n_batch: ["uint32", 2048],
  n_ubatch: ["uint32", 512],
  n_seq_max: ["uint32", 1],
  n_rs_seq: ["uint32", 0],
  n_outputs_max: ["uint32", 0],
  n_outputs_max_per_seq: ["uint32", 1],
  n_threads: ["int32", 4],
  n_threads_batch: ["int32", 4],
  ctx_type: ["int32", 0],
  rope_scaling_type: ["int32", -1],
  pooling_type: ["int32", -1],
  attention_type: ["int32", -1],
  flash_attn_type: ["int32", -1],
  rope_freq_base: ["float", 0],
  rope_freq_scale: ["float", 0],
  yarn_ext_factor: ["float", -1],
  yarn_attn_factor: ["float", -1],
  yarn_beta_fast: ["float", -1],
  yarn_beta_slow: ["float", -1],
  yarn_orig_ctx: ["uint32", 0],
  defrag_thold: ["float", -1],
  cb_eval: ["void *", null],
  cb_eval_user_data: ["void *", null],
  type_k: ["int32", 1],
  type_v: ["int32", 1],
  abort_callback: ["void *", null],
  abort_callback_data: ["void *", null],
  embeddings: ["bool", false],
  offload_kqv: ["bool", true],
  no_perf: ["bool", true],
  op_offload: ["bool", true],
  swa_full: ["bool", true],
  kv_unified: ["bool", false],
  samplers: ["void *", null],
  n_samplers: ["size_t", 0],
  ctx_other: ["void *", null],
} as const satisfies Struct

/** Either tokens or rows of embeddings. Positions are one number for each token, or four for each row of an image (M-RoPE). */
export const batch = {
  n_tokens: "int32",
  token: "void *",
  embd: "void *",
  pos: "void *",
  n_seq_id: "void *",
  seq_id: "void *",
  logits: "void *",
} as const satisfies Fields

export const fieldsOf = (struct: Struct): Fields =>
  Object.fromEntries(Object.entries(struct).map(([name, [type]]) => [name, type]))

/** E.g. ["n_batch is 512, not 2048"]; empty if the library's defaults are the expected ones. */
export const differences = (
  struct: Struct,
  returned: Readonly<Record<string, unknown>>,
): ReadonlyArray<string> =>
  Object.entries(struct).flatMap(([name, [, byDefault]]) => {
    const value = returned[name]
    const same = typeof value === "bigint" ? Number(value) === byDefault : value === byDefault
    return same ? [] : [`${name} is ${String(value)}, not ${String(byDefault)}`]
  })

// llama.cpp's C interface (`llama.h`), called through koffi in the same library that node-llama-cpp has loaded: the same
// mapping, the same backends, the same log. Opened once a process.
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { koffi, type NativeType } from "./Koffi.ts"
import { batch, contextParams, differences, fieldsOf, modelParams, release, type Values } from "./Layout.ts"
import { isNativeObject } from "./NativeObjects.ts"

/** An address in native memory. 0n and null mean no object. */
export type Pointer = bigint
type Nullable = Pointer | null

type ModelParams = Values<typeof modelParams>
type ContextParams = Values<typeof contextParams>
type Batch = { readonly [Name in keyof typeof batch]: number | Pointer | null }

/** A native function: synchronous, or on a thread of the pool, which does not block the event loop. */
interface Native<A extends ReadonlyArray<unknown>, R> {
  (...parameters: A): R
  readonly async: (...parameters: [...A, (error: unknown, result: R) => void]) => void
}

/** Runs the function on a thread of the pool. */
export const onThread = <A extends ReadonlyArray<unknown>, R>(
  call: Native<A, R>,
  ...parameters: A
): Promise<R> =>
  new Promise((resolve, reject) => {
    call.async(...parameters, (error, result) => (error === null ? resolve(result) : reject(error)))
  })

/** The library is not the release that this file was written for. */
export class UnknownRelease extends Error {}

const fileOf = (folder: string): string => {
  const name = readdirSync(folder).find((entry) => isNativeObject(entry, "llama"))
  if (name === undefined)
    throw new UnknownRelease(`no libllama of ${release} beside node-llama-cpp's binding`)
  return join(folder, name)
}

/** What has the functions of C: on Windows a library of its own, elsewhere the one that a library is linked with. */
const libraryOfC = (linked: string) => koffi.load(process.platform === "win32" ? "ucrtbase.dll" : linked)

const openOnce = (folder: string) => {
  const file = fileOf(folder)
  const library = koffi.load(file)
  const native = <A extends ReadonlyArray<unknown>, R>(
    name: string,
    result: NativeType,
    parameters: ReadonlyArray<NativeType>,
  ): Native<A, R> => library.func(name, result, [...parameters]) as Native<A, R>

  const modelStruct = koffi.struct(fieldsOf(modelParams))
  const contextStruct = koffi.struct(fieldsOf(contextParams))
  const batchStruct = koffi.struct(batch)
  const modelDefaults = native<[], ModelParams>("llama_model_default_params", modelStruct, [])()
  const contextDefaults = native<[], ContextParams>("llama_context_default_params", contextStruct, [])()
  const version = native<[], string>("llama_version", "str", [])()
  const unlike = [...differences(modelParams, modelDefaults), ...differences(contextParams, contextDefaults)]
  if (unlike.length > 0)
    throw new UnknownRelease(
      `llama.cpp ${version} where ${release} is expected: ${unlike.slice(0, 3).join(", ")}`,
    )

  return {
    modelDefaults,
    contextDefaults,
    stringLength: libraryOfC(file).symbol("strlen") as Pointer,
    loadModel: native<[path: string, params: ModelParams], Nullable>("llama_model_load_from_file", "void *", [
      "str",
      modelStruct,
    ]),
    freeModel: native<[model: Pointer], void>("llama_model_free", "void", ["void *"]),
    parameters: native<[model: Pointer], number>("llama_model_n_params", "uint64", ["void *"]),
    trainedContext: native<[model: Pointer], number>("llama_model_n_ctx_train", "int32", ["void *"]),
    vocabulary: native<[model: Pointer], Pointer>("llama_model_get_vocab", "void *", ["void *"]),
    vocabularySize: native<[vocabulary: Pointer], number>("llama_vocab_n_tokens", "int32", ["void *"]),
    /** Values of a row of embeddings that the model reads instead of a token, those of deepstack included. */
    inputWidth: native<[model: Pointer], number>("llama_model_n_embd_inp", "int32", ["void *"]),
    /** `LLAMA_ROPE_TYPE_*`: 8 and 40 have four positions for a row of a picture (M-RoPE). */
    ropeType: native<[model: Pointer], number>("llama_model_rope_type", "int32", ["void *"]),
    /** Values of an embedding. */
    embeddingWidth: native<[model: Pointer], number>("llama_model_n_embd_out", "int32", ["void *"]),
    /** 0 none, 1 mean, 2 cls, 3 last, 4 rank. */
    pooling: native<[context: Pointer], number>("llama_pooling_type", "int32", ["void *"]),
    sequenceEmbedding: native<[context: Pointer, sequence: number], Nullable>(
      "llama_get_embeddings_seq",
      "void *",
      ["void *", "int32"],
    ),
    /** The number of tokens; its negative if there are more than `most`. */
    tokenize: native<
      [
        vocabulary: Pointer,
        text: Uint8Array,
        bytes: number,
        into: Int32Array,
        most: number,
        addSpecial: boolean,
        parseSpecial: boolean,
      ],
      number
    >("llama_tokenize", "int32", ["void *", "void *", "int32", "void *", "int32", "bool", "bool"]),
    makeContext: native<[model: Pointer, params: ContextParams], Nullable>(
      "llama_init_from_model",
      "void *",
      ["void *", contextStruct],
    ),
    freeContext: native<[context: Pointer], void>("llama_free", "void", ["void *"]),
    setThreads: native<[context: Pointer, one: number, batch: number], void>("llama_set_n_threads", "void", [
      "void *",
      "int32",
      "int32",
    ]),
    attachThreadpool: native<[context: Pointer, one: Pointer, batch: Pointer], void>(
      "llama_attach_threadpool",
      "void",
      ["void *", "void *", "void *"],
    ),
    detachThreadpool: native<[context: Pointer], void>("llama_detach_threadpool", "void", ["void *"]),
    decode: native<[context: Pointer, batch: Batch], number>("llama_decode", "int32", [
      "void *",
      batchStruct,
    ]),
    synchronize: native<[context: Pointer], void>("llama_synchronize", "void", ["void *"]),
    logits: native<[context: Pointer], Nullable>("llama_get_logits", "void *", ["void *"]),
    memory: native<[context: Pointer], Nullable>("llama_get_memory", "void *", ["void *"]),
    remove: native<[memory: Pointer, sequence: number, from: number, to: number], boolean>(
      "llama_memory_seq_rm",
      "bool",
      ["void *", "int32", "int32", "int32"],
    ),
    copySequence: native<[memory: Pointer, from: number, to: number, first: number, end: number], void>(
      "llama_memory_seq_cp",
      "void",
      ["void *", "int32", "int32", "int32", "int32"],
    ),
    lastPosition: native<[memory: Pointer, sequence: number], number>("llama_memory_seq_pos_max", "int32", [
      "void *",
      "int32",
    ]),
    stateSize: native<[context: Pointer, sequence: number, flags: number], number>(
      "llama_state_seq_get_size_ext",
      "size_t",
      ["void *", "int32", "uint32"],
    ),
    saveState: native<
      [context: Pointer, into: Uint8Array, bytes: number, sequence: number, flags: number],
      number
    >("llama_state_seq_get_data_ext", "size_t", ["void *", "void *", "size_t", "int32", "uint32"]),
    restoreState: native<
      [context: Pointer, from: Uint8Array, bytes: number, sequence: number, flags: number],
      number
    >("llama_state_seq_set_data_ext", "size_t", ["void *", "void *", "size_t", "int32", "uint32"]),
  }
}

export type Libllama = ReturnType<typeof openOnce>

/** By folder. koffi keeps the types and functions of a library as long as the process. */
const opened = new Map<string, Libllama>()

/** @throws UnknownRelease if the structs were written for another release than the loaded library. */
export const openLibllama = (folder: string): Libllama => {
  const library = opened.get(folder) ?? openOnce(folder)
  opened.set(folder, library)
  return library
}

/** A view of `count` floats at a native address, valid as long as that memory. */
export const floatsAt = (address: Pointer, count: number): Float32Array =>
  new Float32Array(koffi.view(address, count * Float32Array.BYTES_PER_ELEMENT))

export const addressOf = (memory: ArrayBuffer): Pointer => koffi.address(memory)

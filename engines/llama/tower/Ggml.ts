// ggml's C interface (`ggml.h`, `ggml-backend.h`, `gguf.h`), called through koffi in the libraries that llama.cpp has loaded:
// the same kernels compute the towers of pictures. Opened once a process. Shapes are checked in Graph before a call, because ggml
// ends the process if they do not fit.
import { koffi } from "../native/Koffi.ts"
import { type Pointer, UnknownRelease } from "../native/Libllama.ts"
import { isNativeObject, type NativeObject } from "../native/NativeObjects.ts"

/** `GGML_TYPE_*` of the values that graphs are given. */
export const valueType = { f32: 0, f16: 1, i32: 26 } as const

/** `GGML_BACKEND_DEVICE_TYPE_GPU` */
const gpuDevice = 1

const pointer = "void *"

const fileOf = (objects: ReadonlyArray<string>, object: NativeObject): string => {
  const found = objects.find((path) => isNativeObject(path, object))
  if (found === undefined) throw new UnknownRelease(`${object} is not among the loaded libraries`)
  return found
}

type Call<R> = (...parameters: ReadonlyArray<unknown>) => R

/** A call that can run on a thread of the pool, see `onThread`. */
interface ThreadCall<A extends ReadonlyArray<unknown>, R> {
  (...parameters: A): R
  readonly async: (...parameters: [...A, (error: unknown, result: R) => void]) => void
}

let structs: { readonly init: unknown; readonly file: unknown } | undefined

const openOnce = (objects: ReadonlyArray<string>) => {
  const base = koffi.load(fileOf(objects, "ggml-base"))
  const processor = koffi.load(fileOf(objects, "ggml-cpu"))
  const registry = koffi.load(fileOf(objects, "ggml"))
  structs ??= {
    init: koffi.struct({ mem_size: "size_t", mem_buffer: pointer, no_alloc: "bool" }),
    file: koffi.struct({ no_alloc: "bool", ctx: pointer }),
  }
  const call = <R>(name: string, result: string, ...parameters: ReadonlyArray<unknown>): Call<R> =>
    base.func(name, result, parameters as Array<string>) as Call<R>
  const tensor = (name: string, ...parameters: ReadonlyArray<string>): Call<Pointer> =>
    call(`ggml_${name}`, pointer, pointer, ...parameters)
  const p = pointer
  const n = "int64"
  return {
    init: call<Pointer>("ggml_init", p, structs.init),
    free: call<void>("ggml_free", "void", p),
    tensorOverhead: call<number | bigint>("ggml_tensor_overhead", "size_t"),
    graphOverhead: call<number | bigint>("ggml_graph_overhead_custom", "size_t", "size_t", "bool"),
    newTensor: tensor("new_tensor_4d", "int", n, n, n, n),
    setInput: call<void>("ggml_set_input", "void", p),
    setOutput: call<void>("ggml_set_output", "void", p),
    add: tensor("add", p, p),
    mul: tensor("mul", p, p),
    mulMat: tensor("mul_mat", p, p),
    norm: tensor("norm", p, "float"),
    gelu: tensor("gelu", p),
    gelu_quick: tensor("gelu_quick", p),
    silu: tensor("silu", p),
    softMax: tensor("soft_max_ext", p, p, "float", "float"),
    cast: tensor("cast", p, "int"),
    flashAttention: tensor("flash_attn_ext", p, p, p, p, "float", "float", "float"),
    setPrecision: call<void>("ggml_flash_attn_ext_set_prec", "void", p, "int"),
    conv2d: tensor("conv_2d", p, p, "int", "int", "int", "int", "int", "int"),
    reshape: tensor("reshape_4d", p, n, n, n, n),
    permute: tensor("permute", p, "int", "int", "int", "int"),
    cont: tensor("cont_4d", p, n, n, n, n),
    view: tensor("view_4d", p, n, n, n, n, "size_t", "size_t", "size_t", "size_t"),
    concat: tensor("concat", p, p, "int"),
    interpolate: tensor("interpolate", p, n, n, n, n, "uint32"),
    ropeMulti: tensor(
      "rope_multi",
      ...[p, p, p, "int", p, "int", "int", "float", "float", "float", "float", "float", "float"],
    ),
    newGraph: tensor("new_graph_custom", "size_t", "bool"),
    expand: call<void>("ggml_build_forward_expand", "void", p, p),
    getTensor: tensor("get_tensor", "str"),
    bytesOf: call<number | bigint>("ggml_nbytes", "size_t", p),
    openFile: call<Pointer | null>("gguf_init_from_file", p, "str", structs.file),
    closeFile: call<void>("gguf_free", "void", p),
    dataOffset: call<number | bigint>("gguf_get_data_offset", "size_t", p),
    findTensor: call<number | bigint>("gguf_find_tensor", n, p, "str"),
    tensorOffset: call<number | bigint>("gguf_get_tensor_offset", "size_t", p, n),
    allocate: call<Pointer | null>("ggml_backend_alloc_ctx_tensors", p, p, p),
    freeBuffer: call<void>("ggml_backend_buffer_free", "void", p),
    freeBackend: call<void>("ggml_backend_free", "void", p),
    setTensor: call<void>("ggml_backend_tensor_set", "void", p, p, "size_t", "size_t"),
    getTensorData: call<void>("ggml_backend_tensor_get", "void", p, p, "size_t", "size_t"),
    compute: base.func("ggml_backend_graph_compute", "int", [p, p]) as unknown as ThreadCall<
      [backend: Pointer, graph: Pointer],
      number
    >,
    supports: call<boolean>("ggml_backend_supports_op", "bool", p, p),
    nodeCount: call<number>("ggml_graph_n_nodes", "int", p),
    node: call<Pointer>("ggml_graph_node", p, p, "int"),
    bufferType: call<Pointer>("ggml_backend_get_default_buffer_type", p, p),
    newAllocator: call<Pointer>("ggml_gallocr_new", p, p),
    allocateGraph: call<boolean>("ggml_gallocr_alloc_graph", "bool", p, p),
    freeAllocator: base.func("ggml_gallocr_free", "void", [p]) as unknown as ThreadCall<
      [allocator: Pointer],
      void
    >,
    openProcessor: processor.func("ggml_backend_cpu_init", p, []) as () => Pointer | null,
    setThreads: processor.func("ggml_backend_cpu_set_n_threads", "void", [p, "int"]) as Call<void>,
    setAbort: processor.func("ggml_backend_cpu_set_abort_callback", "void", [p, p, p]) as Call<void>,
    openGpu: () =>
      registry.func("ggml_backend_init_by_type", p, ["int", p])(gpuDevice, null) as Pointer | null,
  }
}

export type Ggml = ReturnType<typeof openOnce>

let opened: Ggml | undefined

/** `objects`: paths of the loaded libraries. */
export const openGgml = (objects: ReadonlyArray<string>): Ggml => {
  opened ??= openOnce(objects)
  return opened
}

/** Opens a GGUF file without its tensors' data. Returns the file and a context with its tensors; undefined if it is damaged. */
export const openTensors = (
  ggml: Ggml,
  path: string,
): { readonly file: Pointer; readonly context: Pointer } | undefined => {
  const slot = koffi.alloc(pointer, 1)
  try {
    const file = ggml.openFile(path, { no_alloc: true, ctx: slot })
    return file === null ? undefined : { file, context: koffi.decode(slot, pointer) as Pointer }
  } finally {
    koffi.free(slot)
  }
}

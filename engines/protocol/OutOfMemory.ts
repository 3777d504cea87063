// Whether an engine's failure means that its process has no memory left. After a failed allocation the state of native
// libraries is undefined, so EngineServer ends the process, and the node starts a new one.

/**
 * The messages of the libraries: C++ (`std::bad_alloc`), ONNX Runtime ("Failed to allocate memory", "BFCArena"), V8 and
 * Node ("Array buffer allocation failed", ENOMEM), llama.cpp ("failed to allocate").
 */
const patterns =
  /bad_alloc|bad allocation|out of memory|failed to allocate|allocation failed|cannot allocate memory|ENOMEM/i

export const isOutOfMemory = (detail: string): boolean => patterns.test(detail)

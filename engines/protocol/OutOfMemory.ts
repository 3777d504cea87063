// Whether an engine's failure means that its process has no memory left. Called by EngineServer, which then ends the
// process: what an allocator leaves behind after it has failed is nobody's guess, and a new process starts clean.

/**
 * How the libraries here say it: C++ (`std::bad_alloc`), ONNX Runtime ("Failed to allocate memory", "BFCArena"), V8 and
 * Node ("Array buffer allocation failed", ENOMEM), llama.cpp ("failed to allocate").
 */
const sayings =
  /bad_alloc|bad allocation|out of memory|failed to allocate|allocation failed|cannot allocate memory|ENOMEM/i

export const isOutOfMemory = (detail: string): boolean => sayings.test(detail)

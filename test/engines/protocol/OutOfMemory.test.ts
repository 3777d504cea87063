import { expect, it } from "vitest"
import { isOutOfMemory } from "#engines/protocol/OutOfMemory.ts"

it.each([
  "std::bad_alloc",
  "Non-zero status code returned while running Conv node. Failed to allocate memory for requested buffer of size 4096",
  "Array buffer allocation failed",
  "ENOMEM: not enough memory, read",
  "ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 1048576",
])("%s", (detail) => {
  expect(isOutOfMemory(detail)).toBe(true)
})

it.each(["input: has nothing that can be pronounced", "the model returned NaN", "silent for 1000 ms"])(
  "%s is something else",
  (detail) => {
    expect(isOutOfMemory(detail)).toBe(false)
  },
)

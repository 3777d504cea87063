// Presets of models that write text, take pictures or make embeddings: GGUF files. Eight bits a weight where the file stays
// below 2 GB, four bits above.
import type { Preset } from "./Preset.ts"

const chat = { kind: "text" } as const

const qwen3 = (
  size: string,
  quantisation: string,
  sizeBytes: number,
  sum: string,
  does = "chat, tools, thinking",
): Preset => {
  const file = `Qwen3-${size}-${quantisation}.gguf`
  return {
    ...chat,
    name: `qwen3-${size.toLowerCase()}`,
    does,
    family: "Qwen3",
    repository: `Qwen/Qwen3-${size}-GGUF`,
    file,
    sizeBytes,
    licence: "apache-2.0",
    sums: { [file]: sum },
  }
}

export const textPresets: ReadonlyArray<Preset> = [
  qwen3(
    "0.6B",
    "Q8_0",
    639_446_688,
    "9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
    "chat, tools, thinking; the smallest",
  ),
  qwen3("1.7B", "Q8_0", 1_834_426_016, "061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a"),
  qwen3("4B", "Q4_K_M", 2_497_280_256, "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5"),
  qwen3("8B", "Q4_K_M", 5_027_783_488, "d98cdcbd03e17ce47681435b5150e34c1417f50b5c0019dd560e4882c5745785"),
  {
    ...chat,
    name: "qwen2.5-0.5b",
    does: "chat, tools",
    family: "Qwen2.5",
    repository: "Qwen/Qwen2.5-0.5B-Instruct-GGUF",
    file: "qwen2.5-0.5b-instruct-q8_0.gguf",
    sizeBytes: 675_710_816,
    licence: "apache-2.0",
  },
  {
    ...chat,
    name: "llama-3.2-1b",
    does: "chat, tools",
    family: "Llama 3.2",
    repository: "bartowski/Llama-3.2-1B-Instruct-GGUF",
    file: "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
    sizeBytes: 807_694_464,
    licence: "llama3.2",
    sums: {
      "Llama-3.2-1B-Instruct-Q4_K_M.gguf": "6f85a640a97cf2bf5b8e764087b1e83da0fdb51d7c9fab7d0fece9385611df83",
    },
  },
  {
    ...chat,
    name: "llama-3.2-3b",
    does: "chat, tools",
    family: "Llama 3.2",
    repository: "bartowski/Llama-3.2-3B-Instruct-GGUF",
    file: "Llama-3.2-3B-Instruct-Q4_K_M.gguf",
    sizeBytes: 2_020_000_000,
    licence: "llama3.2",
  },
  {
    ...chat,
    name: "gemma-3-1b",
    does: "chat",
    family: "Gemma 3",
    repository: "ggml-org/gemma-3-1b-it-GGUF",
    file: "gemma-3-1b-it-Q4_K_M.gguf",
    sizeBytes: 806_000_000,
    licence: "gemma",
  },
  {
    ...chat,
    name: "smolvlm-256m",
    does: "chat about pictures; the smallest",
    family: "SmolVLM",
    repository: "ggml-org/SmolVLM-256M-Instruct-GGUF",
    file: "SmolVLM-256M-Instruct-Q8_0.gguf",
    sizeBytes: 175_054_528 + 103_769_856,
    licence: "apache-2.0",
    pictures: true,
    sums: {
      "SmolVLM-256M-Instruct-Q8_0.gguf": "2a31195d3769c0b0fd0a4906201666108834848db768af11de1d2cef7cd35e65",
      "mmproj-SmolVLM-256M-Instruct-Q8_0.gguf":
        "7e943f7c53f0382a6fc41b6ee0c2def63ba4fded9ab8ed039cc9e2ab905e0edd",
    },
  },
  {
    ...chat,
    name: "smolvlm-500m",
    does: "chat about pictures",
    family: "SmolVLM",
    repository: "ggml-org/SmolVLM-500M-Instruct-GGUF",
    file: "SmolVLM-500M-Instruct-Q8_0.gguf",
    sizeBytes: 546_000_000,
    licence: "apache-2.0",
    pictures: true,
  },
  {
    ...chat,
    name: "qwen3-vl-2b",
    does: "chat about pictures, tools",
    family: "Qwen3-VL",
    repository: "Qwen/Qwen3-VL-2B-Instruct-GGUF",
    file: "Qwen3VL-2B-Instruct-Q4_K_M.gguf",
    sizeBytes: 1_107_409_952 + 445_053_216,
    licence: "apache-2.0",
    pictures: true,
    sums: {
      "Qwen3VL-2B-Instruct-Q4_K_M.gguf": "089d75c52f4b7ffc56ba998ffc50aae89fcafc755f9e7208aacca281dca6c2ae",
      "mmproj-Qwen3VL-2B-Instruct-Q8_0.gguf":
        "f9a68fabba69c3b81e153367b2c7521030b0fa8bb0de400c9599c8e6725f9c82",
    },
  },
  {
    kind: "embedding",
    name: "qwen3-embedding-0.6b",
    does: "embeddings, 1024 numbers a text",
    family: "Qwen3-Embedding",
    repository: "Qwen/Qwen3-Embedding-0.6B-GGUF",
    file: "Qwen3-Embedding-0.6B-Q8_0.gguf",
    sizeBytes: 639_000_000,
    licence: "apache-2.0",
    sums: {
      "Qwen3-Embedding-0.6B-Q8_0.gguf": "06507c7b42688469c4e7298b0a1e16deff06caf291cf0a5b278c308249c3e439",
    },
  },
]

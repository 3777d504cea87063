// Architectures of GGUF files (`general.architecture`) that the installed llama.cpp reads, by what edgewise serves them as. Names
// from node-llama-cpp 3.21.1; a test compares them with that package.

/** Models that continue a text. */
export const textArchitectures: ReadonlySet<string> = new Set(
  (
    "llama llama4 deci falcon grok gpt2 gptj gptneox mpt baichuan starcoder refact " +
    "bloom stablelm qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3next qwen3vl qwen3vlmoe qwen35 " +
    "qwen35moe phi2 phi3 phimoe plamo plamo2 plamo3 codeshell orion internlm2 minicpm minicpm3 " +
    "gemma gemma2 gemma3 gemma3n gemma4 starcoder2 mamba mamba2 jamba falcon-h1 xverse command-r " +
    "cohere2 cohere2moe dbrx olmo olmo2 olmoe muse-glimmer openelm arctic deepseek deepseek2 deepseek2-ocr " +
    "deepseek32 deepseek4 chatglm glm4 glm4moe glm-dsa bitnet jais jais2 nemotron nemotron_h nemotron_h_moe " +
    "exaone exaone4 exaone-moe rwkv6 rwkv6qwen2 rwkv7 arwkv7 granite granitemoe granitehybrid graniteswitch chameleon " +
    "plm bailingmoe bailingmoe2 dots1 arcee afmoe laguna ernie4_5 ernie4_5-moe hunyuan-moe hunyuan-dense hunyuan_vl " +
    "hy_v3 smollm3 gpt-oss lfm2 lfm2moe smallthinker seed_oss grovemoe apertus minimax-m2 minimax-m3 cogvlm " +
    "pangu-embedded mistral3 mistral4 paddleocr mimo2 step35 maincoder kimi-linear talkie mellum nanbeige"
  ).split(" "),
)

/** Models that were trained for embeddings only. A text model that names a pooling is one too. */
export const embeddingArchitectures: ReadonlySet<string> = new Set(
  "bert modern-bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 jina-bert-v3 eurobert gemma-embedding llama-embed".split(
    " ",
  ),
)

/** Read by llama.cpp, but no model that answers a request. */
export const otherArchitectures: Readonly<Record<string, string>> = {
  clip: "the tower of a model that takes pictures; name the text model beside it",
  dflash: "a helper of another model that guesses its next tokens",
  dream: "a model that writes by diffusion, which no adapter runs",
  eagle3: "a helper of another model that guesses its next tokens",
  "gemma4-assistant": "a helper of another model that guesses its next tokens",
  llada: "a model that writes by diffusion, which no adapter runs",
  "llada-moe": "a model that writes by diffusion, which no adapter runs",
  qwen3tts: "a speech model, which no adapter runs",
  rnd1: "a model that writes by diffusion, which no adapter runs",
  t5: "a model with an encoder and a decoder, which no adapter runs",
  t5encoder: "a text encoder, which no adapter runs",
  "wavtokenizer-dec": "a sound decoder, which no adapter runs",
}

/** Names of quantisations by `general.file_type`, in llama.cpp's numbering. */
const fileTypes: Readonly<Record<number, string>> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  7: "Q8_0",
  8: "Q5_0",
  9: "Q5_1",
  10: "Q2_K",
  11: "Q3_K_S",
  12: "Q3_K_M",
  13: "Q3_K_L",
  14: "Q4_K_S",
  15: "Q4_K_M",
  16: "Q5_K_S",
  17: "Q5_K_M",
  18: "Q6_K",
  25: "IQ4_NL",
  30: "IQ4_XS",
  32: "BF16",
}

/** Undefined for a type without a common name. */
export const quantisationOf = (fileType: number | undefined): string | undefined =>
  fileType === undefined ? undefined : fileTypes[fileType]

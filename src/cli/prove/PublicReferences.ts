// The public references of the presets that `edgewise prove` proves by default, and of their neighbours with the same tokenizer or
// table. Data only. Every entry was read in the named public source; none was computed with edgewise.
import type { Reference } from "./Reference.ts"

/** Several public test suites load this file at this commit and expect this sum; John F. Kennedy, 20 January 1961, 11 s. */
const kennedy = {
  from: "phrases: openai/whisper tests/test_transcribe.py, which asserts them for every model; recording: the hub's Xenova/transformers.js-docs",
  repository: "datasets/Xenova/transformers.js-docs",
  revision: "fbe92bd97d48f3ec17779d8d8f2964e1c6bc7634",
  path: "jfk.wav",
  sha256: "aa81c2552465568567e670f3823117e633900d16bd6202346a72f3c8464c74c8",
  text: "And so, my fellow Americans, ask not what your country can do for you, ask what you can do for your country.",
  phrases: ["my fellow americans", "your country", "do for you"],
} as const

/** Whisper's multilingual vocabulary is the same for all sizes up to large-v2. */
const whisperTokens = {
  from: "huggingface/transformers tests/models/whisper/test_tokenization_whisper.py; openai/whisper tests/test_tokenizer.py",
  texts: [
    {
      text: "다람쥐 헌 쳇바퀴에 타고파",
      ids: [9835, 22855, 168, 98, 238, 13431, 234, 43517, 229, 47053, 169, 222, 19086, 19840, 1313, 17974],
    },
    {
      text: "Hey! How are you feeling? J'ai l'impression que 郷さん est prêt",
      ids: [
        7057, 0, 1012, 366, 291, 2633, 30, 508, 6, 1301, 287, 6, 36107, 631, 220, 11178, 115, 15567, 871,
        44393,
      ],
    },
    { text: " elle est l", ids: [8404, 871, 287] },
  ],
} as const

const whisperMel = {
  from: "entries and sum of WhisperFeatureExtractor.mel_filters (librosa.filters.mel with sr 16000, n_fft 400, n_mels 80), in several public test suites",
  rateHz: 16_000,
  fftSize: 400,
  hopSamples: 160,
  bins: 80,
  sum: 1.999024,
  weights: [
    [0, 1, 0.02486259490251541],
    [1, 2, 0.022871771827340126],
    [9, 10, 0.006945197004824877],
    [39, 41, 0.011486922390758991],
    [69, 131, 0.00487553421407938],
    [79, 192, 0.0031647116411477327],
    [79, 199, 0.0004487590049393475],
  ],
} as const

const whisper = (width: number, heads: number, layers: number): Reference => ({
  dimensions: {
    from: "ModelDimensions in k2-fsa/sherpa-onnx scripts/whisper/model-info.md",
    values: {
      d_model: width,
      encoder_attention_heads: heads,
      encoder_layers: layers,
      decoder_layers: layers,
      num_mel_bins: 80,
      max_source_positions: 1500,
      max_target_positions: 448,
      vocab_size: 51_865,
    },
  },
  tokens: whisperTokens,
  mel: whisperMel,
  recording: kennedy,
})

/** Ids of Kokoro's symbols, and eSpeak's words in Kokoro's spelling. */
const kokoro: Reference = {
  dimensions: {
    from: "hexgrad/kokoro kokoro.js/src/voices.js: 28 English voices; kokoro/pipeline.py: rows of 256 numbers for 510 lengths",
    values: { english_voices: 28, voice_bytes: 510 * 256 * 4 },
  },
  tokens: {
    from: "model card of onnx-community/Kokoro-82M-ONNX, section Usage",
    texts: [
      {
        text: "hˌaʊ kʊd aɪ nˈoʊ? ɪts ɐn ʌnˈænsɚɹəbəl kwˈɛstʃən.",
        ids: [
          50, 157, 43, 135, 16, 53, 135, 46, 16, 43, 102, 16, 56, 156, 57, 135, 6, 16, 102, 62, 61, 16, 70,
          56, 16, 138, 56, 156, 72, 56, 61, 85, 123, 83, 44, 83, 54, 16, 53, 65, 156, 86, 61, 62, 131, 83, 56,
          4,
        ],
      },
    ],
  },
  // 23 of the 34 English texts of that file that were compared sound the same here. The others are left out: titles in capitals, "etc.",
  // "Ms.", "Mrs.", "Yeah", spelled letters and two numbers, which edgewise turns into words in its own way.
  phonemes: {
    from: "hexgrad/kokoro kokoro.js/tests/phonemize.test.js",
    texts: [
      { text: "Hello World", phonemes: "həlˈoʊ wˈɜːld" },
      { text: "‘Test’ and ‘Example’", phonemes: "tˈɛst ænd ɛɡzˈæmpəl" },
      { text: "Dr. Smith", phonemes: "dˈɑːktɚ smˈɪθ" },
      { text: "1990", phonemes: "nˈaɪntiːn nˈaɪndi" },
      { text: "12:34", phonemes: "twˈɛlv θˈɜːɾi fˈoːɹ" },
      { text: "£1.50", phonemes: "wˈʌn pˈaʊnd ænd fˈɪfti pˈɛns" },
      { text: "X's mark", phonemes: "ˈɛksᵻz mˈɑːɹk" },
      { text: "Hello World", phonemes: "həlˈəʊ wˈɜːld", british: true },
      { text: "Mr. Smith", phonemes: "mˈɪstə smˈɪθ", british: true },
      { text: "$100", phonemes: "wˈɒn hˈʌndɹɪd dˈɒləz", british: true },
      { text: "Cat's tail", phonemes: "kˈats tˈeɪl", british: true },
    ],
  },
}

/** Qwen2's vocabulary, which Qwen2.5 and Qwen3 have with further control tokens. */
const qwenTokens = {
  from: "huggingface/transformers tests/models/qwen2/test_tokenization_qwen2.py; control tokens: model cards of Qwen2.5 and Qwen3",
  texts: [
    {
      text: '```python\ntokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen-tokenizer")\ntokenizer("世界，你好！")```',
      ids: [
        73594, 12669, 198, 85593, 284, 8979, 37434, 6387, 10442, 35722, 445, 48, 16948, 45274, 16948, 34841,
        3135, 1138, 85593, 445, 99489, 3837, 108386, 6313, 899, 73594,
      ],
    },
    { text: "<|im_start|>", ids: [151_644], special: true },
    { text: "<|im_end|>", ids: [151_645], special: true },
  ],
} as const

const questions = [
  { ask: "What is the capital of France? Answer with one word.", contains: ["paris"] },
  { ask: "What is 2 + 3? Answer with one number.", contains: ["5"] },
] as const

const qwen3: Reference = {
  tokens: {
    ...qwenTokens,
    texts: [...qwenTokens.texts, { text: "</think>", ids: [151_668], special: true }],
  },
  questions,
}

/** By preset. */
export const publicReferences: Readonly<Record<string, Reference>> = {
  "whisper-tiny": whisper(384, 6, 4),
  "whisper-base": whisper(512, 8, 6),
  "whisper-small": whisper(768, 12, 12),
  "whisper-large-v3-turbo": { recording: kennedy },
  "cohere-transcribe": { recording: kennedy },
  kokoro,
  "kokoro-int8": kokoro,
  "kokoro-timestamped": kokoro,
  "qwen3-0.6b": {
    ...qwen3,
    dimensions: {
      from: "config.json of the hub's Qwen/Qwen3-0.6B",
      values: {
        architecture: "qwen3",
        block_count: 28,
        embedding_length: 1024,
        head_count: 16,
        head_count_kv: 8,
        key_length: 128,
        vocabulary: 151_936,
      },
    },
  },
  "qwen3-1.7b": qwen3,
  "qwen3-4b": qwen3,
  "qwen3-8b": qwen3,
  "qwen2.5-0.5b": { tokens: qwenTokens, questions },
  "llama-3.2-1b": { questions },
  "llama-3.2-3b": { questions },
  "gemma-3-1b": { questions },
}

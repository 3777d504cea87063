// The files that a published Whisper model has beside its graphs. Pure.
import {
  headWidth,
  melFrames,
  positions,
  targetPositions,
  type WhisperShape,
  windowSeconds,
} from "./Shapes.ts"
import type { Vocabulary } from "./Vocabulary.ts"

/** Token of a space. No text may begin with it. */
const space = 220

export const sideFiles = (shape: WhisperShape, vocabulary: Vocabulary): Readonly<Record<string, unknown>> => {
  const end = vocabulary.idOf("<|endoftext|>")
  const start = vocabulary.idOf("<|startoftranscript|>")
  const shared = { bos_token_id: end, eos_token_id: end, pad_token_id: end, decoder_start_token_id: start }
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true }
  const added = vocabulary.added.map(({ content, id, special }) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special,
  }))
  return {
    "config.json": {
      model_type: "whisper",
      architectures: ["WhisperForConditionalGeneration"],
      activation_function: "gelu",
      is_encoder_decoder: true,
      use_cache: true,
      scale_embedding: false,
      vocab_size: vocabulary.size,
      num_mel_bins: shape.melBins,
      d_model: shape.width,
      encoder_layers: shape.encoderLayers,
      encoder_attention_heads: shape.width / headWidth,
      encoder_ffn_dim: 4 * shape.width,
      decoder_layers: shape.decoderLayers,
      decoder_attention_heads: shape.width / headWidth,
      decoder_ffn_dim: 4 * shape.width,
      max_source_positions: positions,
      max_target_positions: targetPositions,
      ...shared,
    },
    "generation_config.json": {
      ...shared,
      begin_suppress_tokens: [space, end],
      is_multilingual: true,
      lang_to_id: Object.fromEntries(
        vocabulary.languages.map((language) => [`<|${language}|>`, vocabulary.idOf(`<|${language}|>`)]),
      ),
      max_initial_timestamp_index: 50,
      max_length: targetPositions,
      no_timestamps_token_id: vocabulary.idOf("<|notimestamps|>"),
      prev_sot_token_id: vocabulary.idOf("<|startofprev|>"),
      return_timestamps: false,
      // Published files list about ninety tokens; -1 is short for the same list.
      suppress_tokens: [-1],
      task_to_id: {
        transcribe: vocabulary.idOf("<|transcribe|>"),
        translate: vocabulary.idOf("<|translate|>"),
      },
    },
    "preprocessor_config.json": {
      feature_extractor_type: "WhisperFeatureExtractor",
      processor_class: "WhisperProcessor",
      feature_size: shape.melBins,
      sampling_rate: 16_000,
      hop_length: 160,
      n_fft: 400,
      chunk_length: windowSeconds,
      n_samples: windowSeconds * 16_000,
      nb_max_frames: melFrames,
      padding_side: "right",
      padding_value: 0,
      return_attention_mask: false,
    },
    "tokenizer_config.json": {
      tokenizer_class: "WhisperTokenizer",
      add_prefix_space: false,
      bos_token: "<|endoftext|>",
      eos_token: "<|endoftext|>",
      unk_token: "<|endoftext|>",
      errors: "replace",
      clean_up_tokenization_spaces: false,
      added_tokens_decoder: Object.fromEntries(added.map(({ id, ...token }) => [id, token])),
    },
    "tokenizer.json": {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: added,
      normalizer: null,
      pre_tokenizer: byteLevel,
      post_processor: null,
      decoder: byteLevel,
      model: {
        type: "BPE",
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: "",
        end_of_word_suffix: "",
        fuse_unk: false,
        byte_fallback: false,
        vocab: Object.fromEntries(vocabulary.words.map((word, id) => [word, id])),
        merges: vocabulary.merges,
      },
    },
  }
}

// Reports for the tests of the page and of the limits: a machine with two cores, and a model with given figures.
import type { Machine, ModelReport } from "../../../src/cli/doctor/report/Document.ts"

export const machine: Machine = {
  cpu: "a processor",
  cores: 2,
  hardware_threads: 2,
  processors: 2,
  quota_cores: null,
  memory_bytes: 8 * 1024 ** 3,
  memory_available_bytes: 6 * 1024 ** 3,
  last_level_cache_bytes: 32 * 1024 ** 2,
  read_gb_per_second: { one_thread: 12, all_cores: 20 },
  load_1m: 0.1,
  busy_percent: 2,
  system: "Linux 6 x64",
  node: "v22.0.0",
}

const empty: ModelReport = {
  id: "model",
  kind: "text",
  adapter: "fake",
  demonstration: false,
  status: "measured",
  same_as: null,
  reason: null,
  incomplete: [],
  summary: null,
  load_ms: 1_500,
  weights_bytes: 240_000_000,
  memory_bytes: 300_000_000,
  private_bytes: 60_000_000,
  threads: 2,
  threads_from: "measured",
  threads_measured: "1 token: 40 ms with 1, 22 ms with 2",
  slots: 16,
  context_tokens: 4_096,
  libraries: [{ name: "llama.cpp", version: "3.21.1", variant: "zen4", provider: "cpu" }],
  text: null,
  speech: null,
  transcription: null,
  limits: [],
}

export const report = (given: Partial<ModelReport>): ModelReport => ({ ...empty, ...given })

/** A text model with reply rates by number of streams; engine busy on `cores` cores at each. */
export const textReport = (
  rates: Readonly<Record<number, number | null>>,
  cores: number,
  given: Partial<ModelReport> = {},
): ModelReport =>
  report({
    text: {
      levels: Object.entries(rates).map(([streams, rate]) => ({
        streams: Number(streams),
        prompt_tokens: 100,
        prompt_tokens_per_second: 400,
        reply_tokens_per_second: rate,
        first_token_ms: { median: 250, best: 200, worst: 1_234, count: Number(streams) },
        first_token_prompt_tokens: 100,
        cores: { engine: cores, node: 0.1, other: 0.05 },
      })),
    },
    ...given,
  })

export const speechReport = (given: Partial<ModelReport> = {}): ModelReport =>
  report({
    id: "voice",
    kind: "speech",
    slots: 8,
    threads: 1,
    threads_from: "catalog",
    speech: {
      real_time_factor: 0.02,
      first_audio_ms: { median: 30, best: 25, worst: 40, count: 3 },
      play_outs: {
        asked: 46,
        admitted: 40,
        admission_factor: 0.02,
        refused: true,
        first_audio_ms: { median: 500, best: 100, worst: 2_000, count: 40 },
        ran_dry: 3,
      },
      cores: { engine: 0.99, node: 0.1, other: 0 },
    },
    ...given,
  })

export const transcriptionReport = (given: Partial<ModelReport> = {}): ModelReport =>
  report({
    id: "ears",
    kind: "transcription",
    transcription: {
      audio_seconds: 50,
      real_time_factor: 0.01,
      short_clip_ms: 60,
      cores: { engine: 1.2, node: 0.3, other: 0.5 },
      live: {
        admitted: 30,
        refused: true,
        window_ms: 30,
        window_seconds: 1,
        one_speaker: { caption_lag_ms: { median: 20, best: 10, worst: 50, count: 4 }, final_ms: null },
        many_speakers: { asked: 30, admitted: 25, caption_lag_ms: null, final_ms: null, failed: 1 },
      },
    },
    ...given,
  })

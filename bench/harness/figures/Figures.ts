// The figures that the harness measures: one value for each request, except where it is said. Names, units and meaning in
// one table, which the help, the reports and the documentation use.

interface FigureFacts {
  readonly unit: "ms" | "share" | "count" | "ratio" | "s"
  readonly label: string
  /** How it is measured, as a sentence. Times begin at the scheduled moment of an open loop, at the sending in a closed one. */
  readonly meaning: string
  /** False if less is better. */
  readonly moreIsBetter?: boolean
  /** Many values for each request: percentiles are over all of them together, without intervals. */
  readonly pooled?: boolean
}

export const figures = {
  ttft: {
    unit: "ms",
    label: "time to first token",
    meaning:
      "Until the first piece of text, reasoning or a tool call arrives; a chunk with a role only does not count.",
  },
  itl: {
    unit: "ms",
    label: "inter-token latency",
    meaning:
      "Between two pieces of a reply, over all replies; pieces that arrive in one read have 0 between them.",
    pooled: true,
  },
  tpot: {
    unit: "ms",
    label: "time per output token",
    meaning:
      "From the first piece to the last, divided by the tokens after the first (the server's count, else pieces).",
  },
  gap: {
    unit: "ms",
    label: "longest gap",
    meaning: "The longest time between two pieces of one reply.",
  },
  e2e: {
    unit: "ms",
    label: "end to end",
    meaning: "Until the reply is complete.",
  },
  tokens: {
    unit: "count",
    label: "output tokens",
    meaning: "As the server counts them in `usage`; pieces where it does not.",
    moreIsBetter: true,
  },
  prompt_tokens: {
    unit: "count",
    label: "prompt tokens",
    meaning: "As the server counts them in `usage`.",
    moreIsBetter: true,
  },
  first_byte: {
    unit: "ms",
    label: "time to first audio byte",
    meaning: "Until the first byte of the reply's body after a WAV header.",
  },
  first_sound: {
    unit: "ms",
    label: "time to first audible sample",
    meaning: "Until the first sample louder than −40 dBFS has arrived; leading silence does not count.",
  },
  underruns: {
    unit: "count",
    label: "under-runs",
    meaning:
      "How often a player that starts with the first audio (or its buffer) had none to play before the end.",
  },
  starved: {
    unit: "ms",
    label: "silence by under-runs",
    meaning: "How long that player waited in total.",
  },
  audio: {
    unit: "s",
    label: "audio",
    meaning: "Duration of the audio that was made or transcribed.",
    moreIsBetter: true,
  },
  rtf: {
    unit: "ratio",
    label: "real-time factor",
    meaning: "From the sending of the request to its end, divided by the duration of the audio.",
  },
  wer: {
    unit: "share",
    label: "word errors",
    meaning:
      "Wrong, missing and added words divided by the words of the reference; the mean is over all words together.",
  },
  final: {
    unit: "ms",
    label: "time to final",
    meaning: "From the end of the audio (a file: of the sending) until the final text.",
  },
  caption_lag: {
    unit: "ms",
    label: "caption lag",
    meaning:
      "From the sending of the audio that a caption covers until the caption, over all captions; only where the server says what it covers.",
    pooled: true,
  },
  word_lag: {
    unit: "ms",
    label: "word lag",
    meaning:
      "From the moment at which a word ends in the audio until a caption first has as many words, over all captions.",
    pooled: true,
  },
  flicker: {
    unit: "share",
    label: "flicker",
    meaning:
      "Words of captions that a later caption changed or took back, divided by the words of the final text.",
  },
  voice_to_voice: {
    unit: "ms",
    label: "voice to voice",
    meaning:
      "From the moment at which the last sample of the user's speech was spoken until the first audible sample of the answer is played.",
  },
  beyond_silence: {
    unit: "ms",
    label: "voice to voice beyond the silence",
    meaning: "Voice to voice without the silence for which the server was told to wait.",
  },
  stop_to_sound: {
    unit: "ms",
    label: "end of turn to sound",
    meaning: "From speech_stopped until the first audible sample of the answer is played.",
  },
  commit_to_sound: {
    unit: "ms",
    label: "commit to sound",
    meaning:
      "From the client's commit until the first audible sample of the answer is played; only where the client ends the turns.",
  },
  early_ends: {
    unit: "count",
    label: "early ends",
    meaning: "How often the server ended the turn before the speech was over.",
  },
  interrupt_last: {
    unit: "ms",
    label: "interruption to last audio",
    meaning:
      "From the first sample of speech over an answer until the last audio of that answer arrives; 0 if all had come before.",
  },
  interrupt_stop: {
    unit: "ms",
    label: "interruption to silence",
    meaning: "From the first sample of speech over an answer until the client stops playing it.",
  },
  late_audio: {
    unit: "count",
    label: "audio after the interruption",
    meaning: "Pieces of audio of an answer that came after the server had heard speech over it.",
  },
  order_errors: {
    unit: "count",
    label: "broken orders",
    meaning:
      "Events out of order: something that begins or ends twice, comes after its end, or an end without usage.",
  },
} as const satisfies Readonly<Record<string, FigureFacts>>

export type FigureName = keyof typeof figures

export const factsOf = (name: FigureName): FigureFacts => figures[name]

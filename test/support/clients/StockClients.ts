// Requests as stock voice clients send them, to the byte: header names in their case and order, bodies in their
// spelling. Only the address, the credential, the text and the audio are the test's. Recorded from a socket, with
// openai-python 2.54.0 (on httpx 0.28.1), websockets 17.1 and aiohttp 3.14.3 called with the arguments that these
// sources call them with:
//
// - pipecat 1.7.0-771-gacead0507: OpenAITTSService, OpenAISTTService, OpenAIRealtimeSTTService
// - LiveKit Agents da6af86a, openai plugin 1.7.0: TTS, STT, its realtime mode
//
// Not recorded but written after its source: Open WebUI 01fb3e46, routers/audio.py, whose speech is configured with
// `response_format` in its additional parameters.

export interface Wire {
  readonly port: number
  readonly key: string
}

const crlf = (lines: ReadonlyArray<string>): string => `${lines.join("\r\n")}\r\n\r\n`

/** The headers that openai-python sends with every request. `readSeconds` is the client's own deadline. */
const openAiPython = ({ key, port }: Wire, accept: string) => ({
  before: [
    `Host: 127.0.0.1:${port}`,
    "Accept-Encoding: gzip, deflate",
    "Connection: keep-alive",
    `Authorization: Bearer ${key}`,
    `Accept: ${accept}`,
  ],
  after: (readSeconds: string, streamsBody: boolean) => [
    "User-Agent: AsyncOpenAI/Python 2.54.0",
    "X-Stainless-Lang: python",
    "X-Stainless-Package-Version: 2.54.0",
    "X-Stainless-OS: Linux",
    "X-Stainless-Arch: x64",
    "X-Stainless-Runtime: CPython",
    "X-Stainless-Runtime-Version: 3.11.7",
    "X-Stainless-Async: async:asyncio",
    ...(streamsBody ? ["X-Stainless-Raw-Response: stream"] : []),
    "x-stainless-retry-count: 0",
    `x-stainless-read-timeout: ${readSeconds}`,
  ],
})

/** POST /v1/audio/speech by `with_streaming_response`. */
const openAiSpeech =
  (json: string, readSeconds: string) =>
  (wire: Wire, text: string): Buffer => {
    const body = Buffer.from(json.replace('"TEXT"', () => JSON.stringify(text)))
    const { after, before } = openAiPython(wire, "application/octet-stream")
    const type = "Content-Type: application/json"
    const length = `Content-Length: ${body.length}`
    const head = ["POST /v1/audio/speech HTTP/1.1", ...before, type, ...after(readSeconds, true), length]
    return Buffer.concat([Buffer.from(crlf(head)), body])
  }

interface Part {
  readonly disposition: string
  readonly type?: string
  readonly body: string | Uint8Array
}

const formBody = (boundary: string, parts: ReadonlyArray<Part>): Buffer =>
  Buffer.concat([
    ...parts.flatMap(({ body, disposition, type }) => [
      Buffer.from(`--${boundary}\r\n`),
      Buffer.from(
        crlf([`Content-Disposition: form-data; ${disposition}`, ...(type ? [`Content-Type: ${type}`] : [])]),
      ),
      Buffer.from(body),
      Buffer.from("\r\n"),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ])

type Fields = ReadonlyArray<readonly [name: string, value: string]>

/** POST /v1/audio/transcriptions: fields first, the file last. */
const openAiTranscription =
  (fields: Fields, filename: string, readSeconds: string) =>
  (wire: Wire, audio: Uint8Array): Buffer => {
    const boundary = "22570fcdf87a79bce0ceffdb9c1cf86c"
    const body = formBody(boundary, [
      ...fields.map(([name, value]) => ({ disposition: `name="${name}"`, body: value })),
      { disposition: `name="file"; filename="${filename}"`, type: "audio/wav", body: audio },
    ])
    const { after, before } = openAiPython(wire, "application/json")
    const head = [
      "POST /v1/audio/transcriptions HTTP/1.1",
      ...before,
      ...after(readSeconds, false),
      `Content-Length: ${body.length}`,
      `Content-Type: multipart/form-data; boundary=${boundary}`,
    ]
    return Buffer.concat([Buffer.from(crlf(head)), body])
  }

/** aiohttp's `session.post(json=…)` with the headers that Open WebUI gives it. */
const openWebUiSpeech = ({ key, port }: Wire, text: string): Buffer => {
  const payload = `{"model": "tts-1", "input": ${JSON.stringify(text)}, "voice": "alloy", "response_format": "mp3"}`
  const body = Buffer.from(payload)
  const head = [
    "POST /v1/audio/speech HTTP/1.1",
    `Host: 127.0.0.1:${port}`,
    "Content-Type: application/json",
    `Authorization: Bearer ${key}`,
    "Accept: */*",
    "Accept-Encoding: gzip, deflate",
    "User-Agent: Python/3.11 aiohttp/3.14.3",
    `Content-Length: ${body.length}`,
  ]
  return Buffer.concat([Buffer.from(crlf(head)), body])
}

interface SpeechCase {
  readonly client: string
  readonly request: (wire: Wire, text: string) => Buffer
  /** The same request in the fields of this API. */
  readonly means: { readonly voice: string; readonly speed?: number; readonly response_format: "pcm" | "mp3" }
}

export const speechCases: ReadonlyArray<SpeechCase> = [
  {
    client: "pipecat, as it comes",
    request: openAiSpeech(
      '{"input":"TEXT","model":"gpt-4o-mini-tts","voice":"alloy","response_format":"pcm"}',
      "600",
    ),
    means: { voice: "af_sarah", response_format: "pcm" },
  },
  {
    client: "pipecat with instructions and a speed",
    request: openAiSpeech(
      '{"input":"TEXT","model":"gpt-4o-mini-tts","voice":"nova","instructions":"Speak slowly.","response_format":"pcm","speed":1.25}',
      "600",
    ),
    means: { voice: "af_bella", speed: 1.25, response_format: "pcm" },
  },
  {
    client: "LiveKit, as it comes",
    request: openAiSpeech(
      '{"input":"TEXT","model":"gpt-4o-mini-tts","voice":"ash","response_format":"mp3","speed":1.0,"stream_format":"sse"}',
      "30",
    ),
    means: { voice: "am_adam", response_format: "mp3" },
  },
  {
    client: "LiveKit with tts-1 and pcm",
    request: openAiSpeech(
      '{"input":"TEXT","model":"tts-1","voice":"ash","response_format":"pcm","speed":1.0,"stream_format":"audio"}',
      "30",
    ),
    means: { voice: "am_adam", response_format: "pcm" },
  },
  { client: "Open WebUI", request: openWebUiSpeech, means: { voice: "af_sarah", response_format: "mp3" } },
]

interface TranscriptionCase {
  readonly client: string
  readonly request: (wire: Wire, audio: Uint8Array) => Buffer
  readonly verbose: boolean
  /** Asks for the log probabilities of the tokens. */
  readonly probabilities?: true
}

export const transcriptionCases: ReadonlyArray<TranscriptionCase> = [
  {
    client: "pipecat, as it comes",
    request: openAiTranscription(
      [
        ["model", "gpt-4o-transcribe"],
        ["language", "en"],
      ],
      "audio.wav",
      "600",
    ),
    verbose: false,
  },
  {
    client: "pipecat with every option",
    request: openAiTranscription(
      [
        ["model", "gpt-4o-transcribe"],
        ["include[]", "logprobs"],
        ["language", "en"],
        ["prompt", "Anna"],
        ["response_format", "json"],
        ["temperature", "0.2"],
      ],
      "audio.wav",
      "600",
    ),
    verbose: false,
    probabilities: true,
  },
  {
    client: "pipecat with whisper-1 and probabilities",
    request: openAiTranscription(
      [
        ["model", "whisper-1"],
        ["language", "en"],
        ["response_format", "verbose_json"],
      ],
      "audio.wav",
      "600",
    ),
    verbose: true,
  },
  {
    client: "LiveKit, as it comes",
    request: openAiTranscription(
      [
        ["model", "gpt-4o-mini-transcribe"],
        ["language", "en"],
        ["response_format", "json"],
      ],
      "file.wav",
      "30",
    ),
    verbose: false,
  },
  {
    client: "LiveKit with whisper-1",
    request: openAiTranscription(
      [
        ["model", "whisper-1"],
        ["language", "en"],
        ["prompt", "Anna"],
        ["response_format", "verbose_json"],
        ["temperature", "0.0"],
      ],
      "file.wav",
      "30",
    ),
    verbose: true,
  },
  {
    client: "LiveKit with gpt-transcribe and keywords",
    request: openAiTranscription(
      [
        ["model", "gpt-transcribe"],
        ["keywords[]", "Anna"],
        ["keywords[]", "Bob"],
        ["languages[]", "en"],
        ["response_format", "json"],
      ],
      "file.wav",
      "30",
    ),
    verbose: false,
  },
  {
    client: "Open WebUI",
    request: ({ key, port }, audio) => {
      const boundary = "d74496d66958873e1a5b1c0ed8f0a1b2"
      const body = formBody(boundary, [
        { disposition: 'name="model"', body: "whisper-1" },
        { disposition: 'name="file"; filename="recording.wav"', body: audio },
      ])
      const head = [
        "POST /v1/audio/transcriptions HTTP/1.1",
        `Host: 127.0.0.1:${port}`,
        "User-Agent: python-requests/2.32.3",
        "Accept-Encoding: gzip, deflate",
        "Accept: */*",
        "Connection: keep-alive",
        `Authorization: Bearer ${key}`,
        `Content-Length: ${body.length}`,
        `Content-Type: multipart/form-data; boundary=${boundary}`,
      ]
      return Buffer.concat([Buffer.from(crlf(head)), body])
    },
    verbose: false,
  },
]

/** LiveKit's `prewarm`: its answer, an error here, is ignored. */
export const liveKitPrewarm = (wire: Wire): string => {
  const { after, before } = openAiPython(wire, "application/json")
  return crlf(["GET /v1/ HTTP/1.1", ...before, ...after("5.0", false)])
}

interface RealtimeCase {
  readonly client: string
  readonly handshake: (wire: Wire) => string
  /** Its first event; pipecat waits for `session.created` before. */
  readonly update: string
  /** Whether the client marks the end of an utterance; otherwise the server detects it. */
  readonly commits: boolean
}

const liveKitHandshake =
  (model: string) =>
  ({ key, port }: Wire): string =>
    crlf([
      `GET /v1/realtime?intent=transcription&model=${model} HTTP/1.1`,
      `Host: 127.0.0.1:${port}`,
      "User-Agent: LiveKit Agents",
      `Authorization: Bearer ${key}`,
      "Upgrade: websocket",
      "Connection: Upgrade",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: X0YszF2PydGWnwCnGtCXSw==",
      "Accept: */*",
      "Accept-Encoding: gzip, deflate",
    ])

export const realtimeCases: ReadonlyArray<RealtimeCase> = [
  {
    client: "pipecat, as it comes",
    handshake: ({ key, port }) =>
      crlf([
        "GET /v1/realtime?intent=transcription HTTP/1.1",
        `Host: 127.0.0.1:${port}`,
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: /TiGLMJMA1rF2ghpV0rW5w==",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
        `Authorization: Bearer ${key}`,
        "User-Agent: Python/3.11 websockets/17.1",
      ]),
    update:
      '{"type": "session.update", "session": {"type": "transcription", "audio": {"input": {"format": {"type": "audio/pcm", "rate": 24000}, "transcription": {"model": "gpt-realtime-whisper", "language": "en"}, "turn_detection": null}}}}',
    commits: true,
  },
  {
    client: "LiveKit with use_realtime",
    handshake: liveKitHandshake("gpt-4o-mini-transcribe"),
    update:
      '{"session": {"type": "transcription", "audio": {"input": {"format": {"rate": 24000, "type": "audio/pcm"}, "transcription": {"language": "en", "model": "gpt-4o-mini-transcribe"}, "turn_detection": {"type": "server_vad", "prefix_padding_ms": 600, "silence_duration_ms": 350, "threshold": 0.5}}}}, "type": "session.update"}',
    commits: false,
  },
  {
    client: "LiveKit with gpt-realtime-whisper",
    handshake: liveKitHandshake("gpt-realtime-whisper"),
    update:
      '{"session": {"type": "transcription", "audio": {"input": {"format": {"rate": 24000, "type": "audio/pcm"}, "transcription": {"language": "en", "model": "gpt-realtime-whisper"}}}}, "type": "session.update"}',
    commits: true,
  },
  {
    client: "LiveKit with gpt-live-transcribe, keywords and noise reduction",
    handshake: liveKitHandshake("gpt-live-transcribe"),
    update:
      '{"session": {"type": "transcription", "audio": {"input": {"format": {"rate": 24000, "type": "audio/pcm"}, "noise_reduction": {"type": "near_field"}, "transcription": {"keywords": ["Anna"], "languages": ["en"], "model": "gpt-live-transcribe"}}}}, "type": "session.update"}',
    commits: true,
  },
]

/** Both clients send 24 kHz PCM in JSON with Python's spaces; LiveKit 50 ms at a time. */
export const appendEvent = (pcm: Uint8Array): string =>
  `{"type": "input_audio_buffer.append", "audio": "${Buffer.from(pcm).toString("base64")}"}`
export const commitEvent = '{"type": "input_audio_buffer.commit"}'

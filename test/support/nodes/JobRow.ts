// The row of a transcription job that this node runs. For tests that need no file.
import type { Job } from "#store/ledger/JobRows.ts"

export const jobRow = (model: string): Job => ({
  id: "job_transcription_1",
  isHere: true,
  acceptedAtMs: 0,
  orgId: "org_1",
  keyId: "key_1",
  model,
  options: {
    language: null,
    prompt: "",
    temperature: 0,
    punctuation: null,
    format: "json",
    granularities: [],
  },
  uploadPath: "/nowhere/at/all",
  status: "processing",
  decodedMs: undefined,
  note: undefined,
  transcript: undefined,
})

// The row of a transcription job that this node runs, and which jobs a node takes. For tests that need no file.
import type { Job } from "#store/ledger/JobRows.ts"
import type { Takes } from "#store/ledger/Jobs.ts"

/** A node's own jobs: no organization was served before, and no model is needed. */
export const ownJobs: Takes = { models: [], lastServed: () => 0 }

export const jobRow = (model: string): Job => ({
  id: "job_transcription_1",
  isHere: true,
  attempt: 1,
  saved: undefined,
  heardSamples: 0,
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

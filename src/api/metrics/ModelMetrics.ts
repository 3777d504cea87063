// The metrics of each model of the catalog. Pure but for one reading of each engine's memory.
import type { ModelMeters } from "#actors/engine/ModelMeters.ts"
import type { ModelSnapshot } from "#actors/model/ModelSnapshot.ts"
import type { ModelKind } from "#domain/models/ModelEntry.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { counter, type Family, gauge, type Samples } from "./PrometheusText.ts"

type Times = {
  [K in keyof ModelMeters]: ModelMeters[K] extends ModelMeters["loadMs"] ? K : never
}[keyof ModelMeters]

export const modelFamilies = (views: ReadonlyArray<ModelSnapshot>): ReadonlyArray<Family> => {
  const hosts = views.flatMap(({ entry, host }) =>
    host === undefined ? [] : [{ model: entry.id, host, gauges: host.gauges() }],
  )
  const perHost = (part: (host: (typeof hosts)[number]) => number): Samples =>
    hosts.map((host) => [{ model: host.model }, part(host)])
  const perModel = (part: (view: ModelSnapshot) => number): Samples =>
    views.map((view) => [{ model: view.entry.id }, part(view)])
  const times = (name: string, help: string, part: Times, kinds?: ReadonlyArray<ModelKind>): Family => ({
    name,
    help,
    type: "histogram",
    samples: views
      // A model without counts is left out: most models of a large catalog are never requested.
      .filter(({ entry, meters }) => (kinds?.includes(entry.kind) ?? true) && meters[part].count > 0)
      .map(({ entry, meters }) => [{ model: entry.id }, meters[part]]),
  })
  return [
    gauge(
      "model_loaded",
      "1 while the model can answer.",
      perModel(({ status }) => (status === "loaded" ? 1 : 0)),
    ),
    gauge(
      "model_failed",
      "1 while the model has failed to load, or crashed too often.",
      perModel(({ status }) => (status === "failed" ? 1 : 0)),
    ),
    gauge(
      "slots",
      "Requests that the engine serves side by side; a text request takes one for each of its replies.",
      perHost(({ gauges }) => gauges.slots),
    ),
    gauge(
      "slots_busy",
      "Slots in use, cancelled requests included until the engine has confirmed.",
      perHost(({ gauges }) => gauges.busySlots),
    ),
    gauge(
      "slots_free",
      "Slots that a request would get at once.",
      perHost(({ gauges }) => Math.max(0, gauges.slots - gauges.busySlots)),
    ),
    gauge(
      "requests_waiting",
      "Requests in the model's waiting line.",
      perHost(({ gauges }) => gauges.waiting),
    ),
    counter(
      "model_requests_total",
      "Requests that a model has ended, by outcome: done, failed, cancelled by the client, refused at a full line.",
      views.flatMap(({ entry, meters }) =>
        Object.entries(meters.outcomes).map(
          ([outcome, count]) => [{ model: entry.id, outcome }, count] as const,
        ),
      ),
    ),
    counter(
      "engine_restarts_total",
      "Engine restarts after a crash or a hang.",
      perModel(({ meters }) => meters.restarts),
    ),
    gauge(
      "engine_resident_bytes",
      "Resident memory of the engine's process.",
      perHost(({ host }) => host.heldBytes()),
    ),
    gauge(
      "model_threads",
      "CPU threads that the model may use at the moment.",
      perHost(({ host }) => host.threadsNow()),
    ),
    gauge(
      "cancel_to_idle_ms_max",
      "Longest time between cancelling a request and its slot being free, since the model was loaded.",
      perHost(({ gauges }) => Math.round(gauges.slowestCancelMs * 10) / 10),
    ),
    times("queue_wait_ms", "From asking for a slot to having one; background work excluded.", "queueWaitMs"),
    times("time_to_first_token_ms", "From asking for a slot to the first text.", "firstUnitMs", ["text"]),
    times("time_to_first_segment_ms", "From asking for a slot to the first segment.", "firstUnitMs", [
      "transcription",
    ]),
    times(
      "time_to_first_audio_ms",
      "From a speech stream's request to the first audio that the socket took.",
      "firstAudioMs",
      ["speech"],
    ),
    times(
      "inter_chunk_gap_ms",
      "Between two chunks of the same answer, as the engine sends them.",
      "unitGapMs",
      ["text", "speech"],
    ),
    times(
      "live_delta_lag_ms",
      "From the last audio that a live caption covers to the caption.",
      "deltaLagMs",
      ["transcription"],
    ),
    times("cancel_to_idle_ms", "From cancelling a request to its slot being free.", "cancelToIdleMs"),
    times("model_load_ms", "From the beginning of a load to the engine's readiness.", "loadMs"),
    times(
      "unload_to_freed_ms",
      "From an unload's beginning until the process and its memory were gone.",
      "unloadToFreedMs",
    ),
    counter(
      "speech_underruns_total",
      "Silences that a listener of a speech stream would have heard.",
      views
        .filter(({ entry }) => entry.kind === "speech")
        .map(({ entry, meters }) => [{ model: entry.id }, meters.underruns]),
    ),
    counter(
      "speech_underrun_ms_total",
      "Length of those silences.",
      views
        .filter(({ entry }) => entry.kind === "speech")
        .map(({ entry, meters }) => [{ model: entry.id }, meters.underrunMs]),
    ),
  ]
}

/** Tokens and seconds that the ledger has charged. */
export const usageFamilies = (
  views: ReadonlyArray<ModelSnapshot>,
  ledger: UsageLedger["Service"],
): ReadonlyArray<Family> => {
  const settled = ledger.settled()
  const used = (
    kinds: ReadonlyArray<ModelKind>,
    part: "inputTokens" | "outputTokens" | "audioMs",
    unit: number,
  ): Samples =>
    views
      .filter(({ entry }) => kinds.includes(entry.kind))
      .map(({ entry }) => [{ model: entry.id }, (settled.get(entry.id)?.[part] ?? 0) / unit])
  return [
    counter(
      "input_tokens_total",
      "Prompt tokens that were charged.",
      used(["text", "embedding"], "inputTokens", 1),
    ),
    counter("output_tokens_total", "Generated tokens that were charged.", used(["text"], "outputTokens", 1)),
    counter(
      "audio_seconds_in_total",
      "Seconds of audio heard and charged.",
      used(["transcription"], "audioMs", 1000),
    ),
    counter(
      "audio_seconds_out_total",
      "Seconds of speech delivered and charged.",
      used(["speech"], "audioMs", 1000),
    ),
  ]
}

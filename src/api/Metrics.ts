// GET /metrics: the node's gauges in Prometheus' text format. Read on demand from the actors; nothing is kept here.
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import { ModelRegistry } from "#actors/ModelRegistry.ts"
import { SpeechAdmission } from "./SpeechAdmission.ts"

interface Family {
  readonly name: string
  readonly type: "gauge" | "counter"
  readonly help: string
  readonly samples: ReadonlyArray<readonly [labels: string, value: number]>
}

const render = (families: ReadonlyArray<Family>): string =>
  families
    .map(({ help, name, samples, type }) => {
      const lines = samples.map(([labels, value]) => `${name}${labels} ${value}`)
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ""].join("\n")
    })
    .join("")

export const metrics = Effect.gen(function* () {
  const views = (yield* ModelRegistry).all()
  const drain = yield* Drain
  const admission = yield* SpeechAdmission
  const perModel = (part: (gauges: NonNullable<(typeof hosts)[number]["gauges"]>) => number) =>
    hosts.flatMap(({ gauges, id }) =>
      gauges === undefined ? [] : [[`{model="${id}"}`, part(gauges)] as const],
    )
  const hosts = views.map(({ entry, host }) => ({ id: entry.id, gauges: host?.gauges() }))
  const body = render([
    {
      name: "edgewise_requests_in_flight",
      type: "gauge",
      help: "Generations admitted and not yet ended.",
      samples: [["", drain.inFlight()]],
    },
    {
      name: "edgewise_model_loaded",
      type: "gauge",
      help: "1 while the model can answer.",
      samples: views.map(
        ({ entry, status }) => [`{model="${entry.id}"}`, status === "loaded" ? 1 : 0] as const,
      ),
    },
    {
      name: "edgewise_slots",
      type: "gauge",
      help: "Requests that the engine serves side by side.",
      samples: perModel(({ slots }) => slots),
    },
    {
      name: "edgewise_slots_busy",
      type: "gauge",
      help: "Slots in use, cancelled requests included until the engine has confirmed.",
      samples: perModel(({ open }) => open),
    },
    {
      name: "edgewise_requests_waiting",
      type: "gauge",
      help: "Requests in the model's waiting line.",
      samples: perModel(({ waiting }) => waiting),
    },
    {
      name: "edgewise_engine_restarts_total",
      type: "counter",
      help: "Engine restarts after a crash or a hang, since the model was loaded.",
      samples: perModel(({ restarts }) => restarts),
    },
    {
      name: "edgewise_engine_resident_bytes",
      type: "gauge",
      help: "Resident memory that the engine last reported.",
      samples: perModel(({ residentBytes }) => residentBytes),
    },
    {
      name: "edgewise_cancel_to_idle_ms_max",
      type: "gauge",
      help: "Longest time between cancelling a request and its slot being free.",
      samples: perModel(({ slowestCancelMs }) => Math.round(slowestCancelMs * 10) / 10),
    },
    {
      name: "edgewise_speech_real_time_factor",
      type: "gauge",
      help: "Seconds of computing a second of speech, as new streams are admitted by.",
      samples: views.flatMap(({ entry }) => {
        const factor = admission.factor(entry.id)
        return factor === undefined ? [] : [[`{model="${entry.id}"}`, Number(factor.toFixed(4))] as const]
      }),
    },
  ])
  return HttpServerResponse.text(body, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
})

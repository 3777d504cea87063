// A whole run: one request of each kind to see that the server answers, then one point of a load, or a search for the
// knee.
import { oneLine, RequestFailed } from "./client/Failures.ts"
import type { Outcome } from "./client/Outcome.ts"
import { Conversations } from "./conversation/Conversations.ts"
import { TranscriptCheck, type TranscriptsResult } from "./conversation/TranscriptCheck.ts"
import { type DrivePlan, drive, type Load } from "./load/Drive.ts"
import { findKnee } from "./load/Knee.ts"
import { type Kind, kinds, type Plan } from "./Plan.ts"
import { kindOf, type Manners, type Requests, request } from "./Requests.ts"
import { single } from "./report/Figure.ts"
import { loadName } from "./report/Format.ts"
import type { Section } from "./report/Result.ts"
import { PointCollector, type PointResult } from "./report/Summarize.ts"

interface Running {
  readonly plan: Plan
  readonly signal: AbortSignal
  /** Called about ten times a second. */
  readonly onProgress: (what: string, share: number | undefined) => void
}

/** The name of the section of a search, after those of its points. */
const kneeSection = "knee"

/** Indices of the requests before the run: none of the run's prompts. */
const preflightIndex = 1_000_000_000

/** The statuses with which servers refuse a field that they do not know. */
const refusals = ["400", "422", "500"]

/** Fails with RequestFailed if a kind's first request does. */
const preflight = async (
  requests: Requests,
  wanted: ReadonlyArray<Kind>,
  running: Running,
): Promise<Manners> => {
  const first = async (kind: Kind, manners: Manners): Promise<Outcome> => {
    running.onProgress(`first ${kind}`, undefined)
    return request(requests, kind, manners, {
      index: preflightIndex,
      scheduledAtMs: performance.now(),
      client: 0,
      signal: running.signal,
    })
  }
  let manners: Manners = { usage: true }
  for (const kind of wanted) {
    let { failure } = await first(kind, manners)
    if (kind === "text" && failure !== undefined && refusals.includes(failure.key)) {
      const without = await first(kind, { usage: false })
      if (without.failure === undefined) {
        manners = { usage: false }
        failure = undefined
      }
    }
    if (failure !== undefined)
      throw new RequestFailed(failure.key, `the first ${kind} request failed: ${failure.detail}`)
  }
  return manners
}

/** Runs with the conversations of one point of the load, and ends them. */
const withConversations = async <A>(
  { drive, plans, target }: Plan,
  check: TranscriptCheck,
  use: (requests: Pick<Requests, "conversations">) => Promise<A>,
): Promise<A> => {
  if (plans.conversation === undefined) return use({})
  const conversations = new Conversations(plans.conversation, target, drive.seed, check)
  try {
    return await use({ conversations })
  } finally {
    conversations.close()
  }
}

/** Fails with RequestFailed if the server does not answer a first request of each kind. */
export const run = async (running: Running): Promise<ReadonlyArray<Section>> => {
  const { onProgress, plan, signal } = running
  const common: Requests = {
    target: plan.target,
    plans: plan.plans,
    shares: plan.shares,
    seed: plan.drive.seed,
  }
  const wanted = kinds.filter((kind) => (plan.shares[kind] ?? 0) > 0)
  const manners = await withConversations(plan, new TranscriptCheck(0), (requests) =>
    preflight({ ...common, ...requests }, wanted, running),
  )
  const { conversation } = plan.plans
  const check = new TranscriptCheck(conversation?.compare ?? 0)

  const point = (drivePlan: DrivePlan): Promise<PointResult> =>
    withConversations(plan, check, async (more) => {
      const requests: Requests = { ...common, ...more }
      const collector = new PointCollector(plan.objective, drivePlan.durationMs)
      const driven = await drive<Outcome>({
        plan: drivePlan,
        issue: (issue) => request(requests, kindOf(requests, issue.index), manners, issue),
        failed: (outcome) => outcome.failure !== undefined,
        onOutcome: (sent) => collector.add(sent),
        onProgress: (share) => onProgress(loadName(drivePlan.load), share),
        signal,
      })
      return collector.result(drivePlan.load, driven)
    })

  const loads = await pointsOf(plan, point, signal)
  const { language, transcriptionModel: model } = conversation ?? {}
  if (model === undefined) return loads
  onProgress("comparing transcripts", undefined)
  const transcripts = await check.result(plan.target, { model, language }, signal)
  return transcripts === undefined ? loads : [...loads, transcriptSection(transcripts)]
}

/** One point, or the points of a search for the knee. */
const pointsOf = async (
  plan: Plan,
  point: (drivePlan: DrivePlan) => Promise<PointResult>,
  signal: AbortSignal,
): Promise<ReadonlyArray<Section>> => {
  if (plan.ramp === undefined) return [(await point(plan.drive)).section]
  const { load } = plan.drive
  const points: Array<Section> = []
  const first = load.loop === "open" ? load.ratePerSecond : load.clients
  const knee = await findKnee({ ...plan.ramp, first, whole: load.loop === "closed" }, async (value) => {
    const at: Load =
      load.loop === "open" ? { loop: "open", ratePerSecond: value } : { loop: "closed", clients: value }
    const result = await point({ ...plan.drive, load: at, seed: plan.drive.seed + points.length })
    points.push(result.section)
    return !signal.aborted && result.held
  })
  const unit = load.loop === "open" ? "requests/s" : "clients"
  return [
    ...points,
    {
      name: kneeSection,
      parts: [
        {
          title: "The knee",
          method:
            "the load was doubled until the objective broke, then the interval was halved; a dash: none held, or none broke",
          figures: [
            single("highest load that held the objective", unit, knee.held ?? Number.NaN, "more"),
            single("lowest load that did not", unit, knee.broke ?? Number.NaN, "more"),
          ],
        },
      ],
    },
  ]
}

const transcriptSection = ({ compared, differences, equal, failure }: TranscriptsResult): Section => ({
  name: "transcripts",
  ...(failure === undefined ? {} : { cautions: [`the comparison ended early: ${failure}`] }),
  parts: [
    {
      title: "Transcripts of turns",
      method: "compared with those of a file with the same audio",
      figures: [single("equal", `of ${compared}`, equal, "more")],
      notes: differences.map(
        ({ conversation, file }) => `"${oneLine(conversation)}" instead of "${oneLine(file)}"`,
      ),
    },
  ],
})

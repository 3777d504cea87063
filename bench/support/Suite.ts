// What a suite is: the processes that it starts, and its sections by name, in their order. Each section runs alone with
// `--section`, because nothing that it needs is left to the sections before it.

import { Effect, type Scope } from "effect"
import { named, type Part } from "#harness/report/Figure.ts"
import type { Section } from "#harness/report/Result.ts"
import { ChildFailed } from "./Child.ts"

export interface SuiteOptions {
  /** Fewer and shorter runs. */
  readonly quick: boolean
  readonly profileDir: string | undefined
  /** Threads of generated weights and of their floor. */
  readonly threads: number | undefined
}

/** What a suite starts and asks. */
interface Definition<Stage, Plan> {
  /** The first word of the command, for messages. */
  readonly name: string
  /** How often and how long the sections measure. */
  readonly plans: { readonly full: Plan; readonly quick: Plan }
  /** Starts what is measured; it ends with the scope. */
  readonly start: (options: SuiteOptions) => Effect.Effect<Stage, ChildFailed, Scope.Scope>
  /** Fails as soon as one of the started processes has ended. */
  readonly died?: (stage: Stage) => Effect.Effect<never, ChildFailed>
  readonly sections: Readonly<
    Record<
      string,
      (stage: Stage, plan: Plan) => Effect.Effect<Part | ReadonlyArray<Part>, ChildFailed, Scope.Scope>
    >
  >
  /** Sections that run only if they are named. */
  readonly onlyNamed?: ReadonlyArray<string>
}

export interface Suite {
  /** The weights that it is about, by file, with their SHA-256. */
  readonly weights?: Effect.Effect<Readonly<Record<string, string>>, ChildFailed>
  /** All sections. */
  readonly sections: ReadonlyArray<string>
  /** Those that run without `--section`. */
  readonly usual: ReadonlyArray<string>
  /** Runs the section, or the usual ones; passes each result on when its section is done. */
  readonly run: (
    options: SuiteOptions & { readonly section: string | undefined },
    onMeasured: (section: Section) => void,
  ) => Effect.Effect<void, ChildFailed, Scope.Scope>
}

export const suite = <Stage, Plan>({
  died,
  name,
  onlyNamed = [],
  plans,
  sections,
  start,
}: Definition<Stage, Plan>): Suite => {
  const all = Object.keys(sections)
  const usual = all.filter((one) => !onlyNamed.includes(one))
  return {
    sections: all,
    usual,
    run: Effect.fnUntraced(function* (options, onMeasured) {
      const { quick, section } = options
      if (section !== undefined && !all.includes(section)) {
        const detail = `--section ${section}: here it is one of ${all.join(", ")}`
        return yield* new ChildFailed({ child: `bench ${name}`, detail })
      }
      const stage = yield* start(options)
      const plan = quick ? plans.quick : plans.full
      const measuring = Effect.gen(function* () {
        for (const one of section === undefined ? usual : [section]) {
          const found = yield* sections[one]!(stage, plan)
          const parts: ReadonlyArray<Part> = Array.isArray(found) ? found : [found]
          onMeasured({ name: one, parts: parts.map(named) })
        }
      })
      yield* died === undefined ? measuring : Effect.raceFirst(measuring, died(stage))
    }),
  }
}

/** A suite of one section that starts its own processes. */
export const oneSection = (
  name: string,
  section: string,
  measure: (options: SuiteOptions) => Effect.Effect<Part | ReadonlyArray<Part>, ChildFailed, Scope.Scope>,
): Suite =>
  suite({
    name,
    plans: { full: undefined, quick: undefined },
    start: Effect.succeed<SuiteOptions>,
    sections: { [section]: measure },
  })

/** The same questions asked of generated weights: a suite for each size. */
export interface Sizes {
  readonly sizes: readonly [string, ...ReadonlyArray<string>]
  readonly of: (size: string) => Suite
}

export const bySize = <const Names extends readonly [string, ...ReadonlyArray<string>]>(
  sizes: Names,
  of: (size: Names[number]) => Suite,
): Sizes => ({ sizes, of: (size) => of(sizes.find((one) => one === size) ?? sizes[0]) })

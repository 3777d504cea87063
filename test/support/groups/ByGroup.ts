// The order of the files of a run. Each project after the other, because a worker that goes on with another one starts anew. Where files of
// several groups share workers, lighter groups come first, so that what files have left in their worker is nothing that the next ones may
// not use (Guard.ts).
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { type Group, groupOf, groups, together } from "./Groups.ts"

/** Groups of the same number are mixed: tests of weights compute, and those of databases and browsers wait. */
const stages: Readonly<Record<Group, number>> = {
  fast: 0,
  process: 1,
  weights: 2,
  postgres: 2,
  browser: 2,
  long: 3,
}

export default class ByGroup extends BaseSequencer {
  /** Within a group as vitest orders them, the longest first. */
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project))]
    return projects.flatMap((project) => {
      const own = sorted.filter((file) => file.project === project)
      return project.name === together ? mixed(own) : own
    })
  }
}

/** The files of each group at equal distances in their stage. */
const mixed = (files: ReadonlyArray<TestSpecification>): ReadonlyArray<TestSpecification> =>
  groups
    .flatMap((group) => {
      const own = files.filter(({ moduleId }) => groupOf(moduleId) === group)
      return own.map((file, at) => ({ file, place: stages[group] + (at + 0.5) / own.length }))
    })
    .toSorted((one, other) => one.place - other.place)
    .map(({ file }) => file)

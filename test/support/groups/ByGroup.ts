// The order of the files of a run: by group, so that what files have left in their worker is nothing that the next ones may not use
// (Guard.ts); within a group as vitest orders them, the longest first.
import { BaseSequencer, type TestSpecification } from "vitest/node"
import { groupOf, groups, together } from "./Groups.ts"

export default class ByGroup extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    const projects = [...new Set(sorted.map(({ project }) => project))]
    const rank = ({ moduleId, project }: TestSpecification): number =>
      projects.indexOf(project) * groups.length +
      (project.name === together ? groups.indexOf(groupOf(moduleId)) : 0)
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}

// Several replies on one prompt: one job evaluates it, and each of the others begins with a copy of its sequence and samples its
// first token from the same logits. So each of them is the reply that a request of its own would get.
import type { NativeContext } from "../native/Native.ts"
import type { Job } from "./Job.ts"
import type { SequenceMemory } from "./SequenceMemory.ts"

export const openSampler = (native: NativeContext, job: Job): void => {
  const { biases, reply, sampling } = job.terms
  job.sampler = native.sampler(sampling, biases)
  for (const token of reply.lead) job.sampler.count(token)
}

/**
 * Gives the followers of a job copies of its sequence, which holds the prompt. Returns those that reply now.
 * @throws if there is no free sequence
 */
export const startFollowers = (
  native: NativeContext,
  memory: SequenceMemory,
  leader: Job,
): ReadonlyArray<Job> => {
  const { followers } = leader
  leader.followers = []
  return followers.filter((job) => {
    job.waits = false
    if (!job.wanted) return false
    job.slot = memory.copy(leader.slot!)
    if (job.slot === undefined) throw new Error("more replies than sequences")
    openSampler(native, job)
    const { length } = job.terms.prompt
    const imageTokens = job.pictures.count === 0 ? {} : { imageTokens: job.pictures.count }
    job.terms.reply.begin({ promptTokens: length, cachedTokens: length, ...imageTokens })
    return true
  })
}

// Limits and intervals of the actors, with a reason beside each number. What concerns restarts is in Specifications.ts.

/** Control messages waiting for one model; each is an operator's or a first request's, so 1,024 is a flood. */
export const modelMailbox = 1_024

/**
 * How long a model stays `failed` before a request may try to load it again, and what Retry-After says meanwhile.
 * A guess: long enough not to burn a core on hopeless weights, short enough to be worth waiting for.
 */
export const reviveAfterMs = 30_000

/** How often a load that did not fit has memory freed for it: another load may claim it first. A guess. */
export const evictionRounds = 10

/** After a process has ended, its GPU memory is read so often and so far apart: the driver reports it freed with a delay. */
export const gpuReadings = 10
export const gpuReadingMs = 200

/** What a caller is told who is refused because memory is nearly full: a few readings from now. A guess. */
export const pressureRetryMs = 5_000

/** How often the node compares what it holds with its memory budget. A guess: loads take longer than that. */
export const memoryWatchMs = 1_000

/**
 * While live sessions keep the engine busy, an interactive request starts this often at least. A guess: on a node whose
 * sessions were admitted by measurement it is never needed.
 */
export const interactivePatienceMs = 1_000

/**
 * For this long after a live session or another user's request needed the engine, files take one window a call, and leave
 * one slot of several to live sessions. A guess: live windows last 0.25 to 10 s.
 */
export const contendedMs = 10_000

/**
 * While others are served in person, background work (a window of a transcription job) begins this often at most. A
 * guess: a window is a tenth of it on the demonstration weights, so those in person keep nine tenths of their engine.
 */
export const backgroundPatienceMs = 1_000

/**
 * A model that a reload has removed or replaced ends when its last request has. Asked this often, and ended after so long
 * in any case. Guesses: a live session lasts 2 minutes at most, and few answers take longer than 10.
 */
export const leavingCheckMs = 100
export const leaveAfterMs = 600_000

// How soon speech is found, and its end: sentences with silence before and behind, clean and in noise.

import { percentile } from "#harness/figures/Statistics.ts"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { spoken } from "./Clips.ts"
import { hear, perMs } from "./Hearing.ts"

/**
 * `all`: each one from its first to its last audible sample, peak 1. Taken in turn until there are `count`; `seed` decides loudness and noise.
 */
export const speech = (
  said: { readonly title: string; readonly what: string; readonly all: ReadonlyArray<Float32Array> },
  count: number,
  seed: number,
): Part => {
  const { all, title, what } = said
  const silenceMs = 300
  const figures = ([undefined, 20, 10] as const).flatMap((decibels) => {
    const clips = Array.from({ length: count }, (_, i) => spoken(all[i % all.length]!, decibels, seed + i))
    const heard = clips.map((clip) => ({ clip, ...hear(clip.samples, silenceMs) }))
    const onsets = heard.flatMap(({ clip, foundMs }) =>
      foundMs === undefined ? [] : [foundMs - clip.from / perMs],
    )
    const ends = heard.flatMap(({ clip, stoppedAtMs }) =>
      stoppedAtMs === undefined ? [] : [stoppedAtMs - clip.to / perMs - silenceMs],
    )
    const name = decibels === undefined ? "clean" : `noise at ${decibels} dB`
    const bound = (value: number) => (decibels === 10 ? undefined : ({ is: "at most", value } as const))
    return [
      figure(`${name}: missed`, `of ${count}`, [count - onsets.length], atMost(count / 100)),
      figure(`${name}: first sample to detection, p50`, "ms", [percentile(onsets, 0.5)], bound(100)),
      figure(`${name}: first sample to detection, p95`, "ms", [percentile(onsets, 0.95)], bound(160)),
      figure(
        `${name}: last sample to the turn's end, more than the silence, p50`,
        "ms",
        [percentile(ends, 0.5)],
        decibels === undefined ? bound(20) : undefined,
      ),
      figure(
        `${name}: the same, p95`,
        "ms",
        [percentile(ends, 0.95)],
        decibels === undefined ? bound(60) : undefined,
      ),
    ]
  })
  return {
    title,
    method: `${count} ${what}, peak -25 to -1 dBFS, in events of 20 ms; white noise from before to behind. Silence of ${silenceMs} ms. A sample counts from 30 dB below the peak of its sentence.`,
    figures,
  }
}

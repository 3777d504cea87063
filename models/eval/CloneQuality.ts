// Measures whether a cloned voice resembles its reference: it should be nearer to it in pitch and timbre than to the other
// references and to the presets. The speakers are synthetic and were not part of the style encoder's training.
import { Effect } from "effect"
import { speechRateHz } from "#domain/audio/Audio.ts"
import { encoderAudio } from "#engines/shared/speech/ReferenceClip.ts"
import { atLeast, figure, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import { loadCloner, loadVoices, speak, toTranscriberInput } from "./Engines.ts"
import { evaluationSet, referenceSamples } from "./EvaluationSet.ts"
import { pitchDistance, profileOf, profileRateHz, timbreDistance, type VoiceProfile } from "./VoiceProfile.ts"

/** A semitone counts as much as a decibel: both are about the smallest audible difference. A convention of this bench. */
const distance = (a: VoiceProfile, b: VoiceProfile): number => pitchDistance(a, b) + timbreDistance(a, b)

export const cloneSections = Effect.gen(function* () {
  const [voices, cloner] = [yield* loadVoices, yield* loadCloner]
  const text = evaluationSet.roundTrip.slice(0, 3).join(" ")
  const references = yield* Effect.forEach(evaluationSet.references, (reference) =>
    Effect.gen(function* () {
      const clip = yield* referenceSamples(reference)
      const profile = yield* profileOf(encoderAudio(clip, speechRateHz, profileRateHz))
      return { ...reference, clip, profile }
    }),
  )
  const presets = yield* Effect.forEach(voices.facts.voices, (preset) =>
    Effect.flatMap(speak(voices, text, { preset }), ({ samples }) => profileOf(toTranscriberInput(samples))),
  )
  const clones = yield* Effect.forEach(references, (own) =>
    Effect.gen(function* () {
      const voice = { clip: own.clip, rateHz: speechRateHz, transcript: own.text }
      const { samples } = yield* speak(cloner, text, voice)
      return { own, profile: yield* profileOf(toTranscriberInput(samples)) }
    }),
  )
  const likeness = clones.map(({ own, profile }) => {
    const otherReferences = references.filter((other) => other !== own).map((other) => other.profile)
    const otherClones = clones.filter((clone) => clone.own !== own).map((clone) => clone.profile)
    const to = (others: ReadonlyArray<VoiceProfile>, from: VoiceProfile) =>
      Math.min(...others.map((other) => distance(from, other)))
    return {
      found: distance(profile, own.profile) < to([...otherClones, ...presets], own.profile),
      nearest: distance(profile, own.profile) < to([...otherReferences, ...presets], profile),
      pitch: 100 * Math.abs(profile.pitchHz / own.profile.pitchHz - 1),
      timbre: timbreDistance(profile, own.profile),
      ofPresets: Math.min(...presets.map((preset) => timbreDistance(preset, own.profile))),
    }
  })
  const count = clones.length
  const tally = (hits: ReadonlyArray<boolean>) => [hits.filter((hit) => hit).length]
  const goal = atLeast(9)
  return [
    {
      title: "Clones: like their reference",
      method: `${count} speakers that were not in the training, one clip of about 6 s each. Distance: semitones of pitch plus dB of the mean spectral envelope of voiced frames.`,
      figures: [
        figure(
          `references whose own clone is nearer than the ${count - 1} other clones and the ${presets.length} presets`,
          `of ${count}`,
          tally(likeness.map(({ found }) => found)),
          goal,
        ),
        figure(
          `clones whose own reference is nearer than the ${count - 1} other references and the presets`,
          `of ${count}`,
          tally(likeness.map(({ nearest }) => nearest)),
          goal,
        ),
        figureOf(ofEach(likeness, "difference in pitch", "%", ({ pitch }) => pitch)),
        figureOf(ofEach(likeness, "difference in timbre", "dB", ({ timbre }) => timbre)),
        figureOf(
          ofEach(likeness, "difference in timbre of the nearest preset", "dB", ({ ofPresets }) => ofPresets),
        ),
      ],
    },
  ] satisfies ReadonlyArray<Part>
})

// The tables of chapter 17 of docs/protocol have the values of the code's constants. Read by ProtocolPages.

import { readFileSync } from "node:fs"
import { Effect, Schema } from "effect"
import { expect, it } from "vitest"
import { longestSessionSeconds } from "#actors/live/LiveSession.ts"
import { secretsOfUser } from "#api/access/RateLimit.ts"
import { sessionFailuresAMinute } from "#api/access/Sessions.ts"
import { idleMinutes } from "#api/conversation/door/Converse.ts"
import { longestSeconds } from "#api/conversation/door/SessionEnds.ts"
import { decodeJson } from "#api/http/JsonBody.ts"
import { droppedTraffic } from "#api/live/DroppedBytes.ts"
import { smallEvents, tooLargeCost } from "#api/live/EventReader.ts"
import { threadShare } from "#api/live/IntakePace.ts"
import { turnSeconds } from "#api/live/RealtimeItems.ts"
import { largeTraffic, realtimeBudget } from "#api/live/SocketShare.ts"
import { largeBodyBytes, maxChatBytes } from "#api/text/ChatBody.ts"
import { defaultLimits } from "#audio/Decoder.ts"
import { settings } from "#config/Settings.ts"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { audioAllowance } from "#domain/access/AudioAllowance.ts"
import { readAhead } from "#domain/access/ReadAhead.ts"
import { clockSkewMs, keySetAgeSeconds, maxSessionMs } from "#domain/access/SigningSchedule.ts"
import { idleMs } from "#domain/audio/Listening.ts"
import { maxTermsCharacters, secretSeconds, sessionsAtOnce } from "#domain/conversation/ClientSecretTerms.ts"
import { maxItemBytes, maxItems } from "#domain/conversation/History.ts"
import { mostBeside } from "#domain/conversation/TurnTaking.ts"
import { maxJsonBytes, maxKeys, maxNumberChars } from "#domain/json/JsonLimits.ts"
import { parseJson } from "#domain/json/JsonText.ts"
import { Catalog, Runtime } from "#domain/models/ModelEntry.ts"
import { allowance } from "#domain/pictures/Allowance.ts"
import { maxScans } from "#domain/pictures/Jpeg.ts"
import { maxPicturePixels } from "#domain/pictures/PictureFile.ts"
import { requestPieces } from "#domain/queues/PieceBudget.ts"
import { CompletionRequest, maxPrompts } from "#domain/wire/Completion.ts"
import type { InvalidRequest } from "#domain/wire/Errors.ts"
import { windowSeconds } from "#domain/wire/LiveParameters.ts"
import { maxEventBytes } from "#domain/wire/RealtimeProtocol.ts"
import { maxRequestIdLength } from "#domain/wire/RequestId.ts"
import { metadataLimits } from "#domain/wire/responses/Request.ts"
import { maxBiases, maxReplies, maxTopLogprobs } from "#domain/wire/Sampling.ts"
import { SpeechRequest } from "#domain/wire/Speech.ts"
import { mostKeywordCharacters, mostKeywords, TranscriptionParameters } from "#domain/wire/Transcription.ts"
import { maxPictures } from "#domain/wire/text/Pictures.ts"
import {
  maxSchemaBytesTogether,
  maxSchemaValuesTogether,
  schemaLimits,
} from "#domain/wire/text/SchemaBounds.ts"
import { maxTools } from "#domain/wire/text/Tools.ts"
import { compilationMs, compilationsMs } from "#engines/llama/compiler/GrammarCompiler.ts"
import { mostWork } from "#engines/llama/model/Constraints.ts"
import { maxPictureBytes } from "#pictures/PictureUrl.ts"
import { maxArgumentChars, maxArgumentParts } from "#services/chat/ChatTurns.ts"
import { maxLogprobs } from "#services/ReplyLimits.ts"
import { maxFileBytes } from "#services/TranscriptionUpload.ts"
import { maxLiveSecrets } from "#store/accounts/ClientSecrets.ts"
import { AnswerBounds } from "#store/idempotency/IdempotencyStore.ts"
import { lostMs, maxUnfinished, maxUnfinishedOfOrg } from "#store/ledger/Jobs.ts"
import { defaultRetention } from "#store/sql/Retention.ts"
import { defaultSettings } from "#transport/TransportSettings.ts"
import { rowsOf, sections } from "./ProtocolPages.ts"

const model = "m"

/** As the pages write numbers: 8,000,000. */
const n = (value: number): string => value.toLocaleString("en-US")
const s = (ms: number): string => `${n(ms / 1000)} s`

const problemIn = (text: string): string => {
  const parsed = parseJson(text)
  return "problem" in parsed ? parsed.problem : "none"
}

/** The number in a schema's complaint about a value, e.g. 4096 in "must be at most 4096 items". */
const complaint = (decode: Effect.Effect<unknown, InvalidRequest>): string =>
  Effect.runSync(Effect.flip(decode)).problem
const lastNumber = (text: string): string => n(Number(/(\d[\d.]*)\D*$/.exec(text)?.[1]))

const decodeCompletion = decodeJson(CompletionRequest)
const completion = (fields: object) =>
  complaint(decodeCompletion(JSON.stringify({ model, prompt: "", ...fields })))
const speed = complaint(
  decodeJson(SpeechRequest)(JSON.stringify({ model, input: "a", voice: "b", speed: 9 })),
)
const prompt = complaint(decodeJson(TranscriptionParameters)(JSON.stringify({ prompt: "a".repeat(100_000) })))

const runtime = Schema.decodeUnknownSync(Runtime)({})
const catalog = Schema.decodeUnknownSync(Catalog)(JSON.parse(readFileSync(builtInCatalog, "utf8")))
const entryOf = (id: string) => catalog.models.find((entry) => entry.id === id)
const capOf = (id: string): string => `${n(entryOf(id)?.speech?.maxCharacters ?? 0)} code points`

/** Each limit that the code exports, or shows in an error: the row's name and its value as the page has it. */
const limits: Readonly<Record<string, string>> = {
  "JSON body": `${n(maxJsonBytes)} bytes`,
  "body of a chat with a model that takes pictures": `${n(maxChatBytes)} bytes`,
  "such a body without its `data:` URLs": `${n(maxJsonBytes)} bytes`,
  "bodies over 8,000,000 bytes in memory": `${n(largeBodyBytes.node)} bytes on a node, ${n(largeBodyBytes.user)} of a user`,
  "pictures of a request": `${maxPictures} pictures`,
  "pixels of a picture": `${n(maxPicturePixels)}, and what a decoder's memory holds`,
  "scans of a JPEG": `${maxScans} scans`,
  "picture from an address": `${n(maxPictureBytes)} bytes in 10 s, 3 redirects`,
  "processor time to decode a picture": `${allowance.any} ms, ${allowance.perMegapixel} ms a million pixels, ${allowance.perMegabyte} ms a megabyte`,
  "commas in a JSON body": lastNumber(problemIn(`[${"0,".repeat(200_000)}0]`)),
  "nesting of a JSON body": `${lastNumber(problemIn("[".repeat(1_000)))} levels`,
  "keys of an object in a large body": n(maxKeys),
  "characters of a number in a large body": n(maxNumberChars),
  "items of a list, with those of the lists inside its items": `${lastNumber(complaint(decodeCompletion(JSON.stringify({ a: Array(9_000).fill(0) }))))} items`,
  "request head": `${n(defaultSettings.headBytes)} bytes`,
  "silence within a body": s(defaultSettings.bodyStallTimeoutMs),
  [`rate of a body after ${s(defaultSettings.bodyGraceMs)}`]: `${n(defaultSettings.bodyBytesPerSecond)} bytes a second`,
  "pieces of a body of any size": `${n(requestPieces.free)}; then ${requestPieces.meanBytes} bytes on average`,
  "reader that takes nothing": s(defaultSettings.stallTimeoutMs),
  "connections of a listener": n(settings.maxConnections.fallback),
  "request id": `${maxRequestIdLength} characters`,
  "requests of a user": `${settings.rateLimit.fallback} in 60 s`,
  "wrong credentials of an address, edge": `${settings.authFailureLimit.fallback} a minute`,
  "wrong credentials of an address, auth": `${sessionFailuresAMinute} a minute`,
  "requests without a credential of an address": `${n(settings.anonymousRate.fallback)} a second`,
  "requests with a client secret": `${settings.rateLimit.fallback} in 60 s, ${n(secretsOfUser * Number(settings.rateLimit.fallback))} of all secrets of a user`,
  "open sessions of a client secret": `${sessionsAtOnce.default}`,
  "prompts that are read ahead": `${n(readAhead.burst)} tokens of a user, back in ${n(readAhead.burst / readAhead.perSecond)} s or with the prompts that are charged`,
  "queue of a model": `${runtime.waitingLine} requests`,
  "`max_tokens`": `1 to ${lastNumber(completion({ max_tokens: 9_999 }))}`,
  "context of the built-in text models": `${n(Number(entryOf("llm-3.5-27b")?.options.contextTokens))} tokens`,
  "stop sequences": `${lastNumber(completion({ stop: Array(99).fill("a") }))} of ${lastNumber(completion({ stop: "a".repeat(9_999) }))} characters`,
  "prompts of a text completion": `${maxPrompts} prompts`,
  "replies of a request": `${maxReplies}, and the slots of the model`,
  "tools of a request": `${maxTools} tools`,
  "JSON Schema of a tool or a format": `${n(schemaLimits.bytes)} bytes, ${schemaLimits.levels} levels, ${n(schemaLimits.subschemas)} subschemas`,
  "JSON Schemas of a request together": `${n(maxSchemaBytesTogether)} bytes, ${n(maxSchemaValuesTogether)} values`,
  "processor time to compile the schemas of a request": `${compilationMs} ms`,
  "the same of a user's new schemas": `${compilationsMs / 1_000} s a minute`,
  "work to hold a reply to its schemas": `${n(mostWork)} units ([schemas.md](../schemas.md#bounds))`,
  "most likely tokens beside a token": `${maxTopLogprobs}`,
  "log probabilities of a reply": n(maxLogprobs),
  "`metadata` of a response": `${metadataLimits.pairs} keys of ${metadataLimits.keyChars} characters, values of ${metadataLimits.valueChars}`,
  "entries of `logit_bias`": `${n(maxBiases)} tokens`,
  "arguments of all calls in a history": `${n(maxArgumentChars)} characters, ${n(maxArgumentParts)} keys, lists and objects`,
  "speech input, `tts-82m`": capOf("tts-82m"),
  "speech input, `tts-3b-ml`": capOf("tts-3b-ml"),
  "speech speed": `0.25 to ${lastNumber(speed)}`,
  "transcription file": `${n(maxFileBytes)} bytes`,
  "decoded length of a file": Number.isFinite(defaultLimits.maxSeconds)
    ? `${n(defaultLimits.maxSeconds)} s`
    : "none",
  "processor time to decode a file": s(defaultLimits.maxCpuMs),
  keywords: `${n(mostKeywords)} phrases of ${mostKeywordCharacters} characters`,
  "transcription prompt": `${lastNumber(prompt)} characters`,
  "unfinished jobs of an organization": `${maxUnfinishedOfOrg} on a node`,
  "unfinished jobs of a node": n(maxUnfinished),
  "session token": `${n(settings.sessionSeconds.fallback)} s`,
  "longest session token": s(maxSessionMs),
  "tolerance for clocks": s(clockSkewMs),
  "client secret": `${secretSeconds.default} s`,
  "valid client secrets of an organization": n(maxLiveSecrets),
  "session of a client secret": `${n(maxTermsCharacters)} characters of JSON`,
  "key set at an edge": `${keySetAgeSeconds} s`,
  "answer for an `Idempotency-Key`": s(defaultRetention.answerMs),
  "size of such an answer": `${n(Effect.runSync(AnswerBounds).answerBytes)} bytes`,
  "job of a node that is not seen": s(lostMs),
  "time to finish when a node stops": `${settings.drainSeconds.fallback} s`,
  route: `${settings.routeTtlSeconds.fallback} s`,
  "load of a model": s(runtime.loadDeadlineMs),
  "silence of an engine that does not compute": s(runtime.hangDeadlineMs),
  "audio of a live session": `${longestSessionSeconds} s`,
  "audio of a realtime item": `${turnSeconds} s`,
  "silence of a live client": s(idleMs),
  "duration of a conversation": `${longestSeconds / 60} minutes`,
  "silence of a conversation's client": `${idleMinutes} minutes`,
  "realtime events, but those with 10 ms of audio and more": `${smallEvents.burst} at once, ${smallEvents.perSecond} a second; a new item is a quarter, one that is too large ${tooLargeCost}`,
  "bytes of large realtime events of a user": `${n(largeTraffic.burstBytes)} at once, ${n(largeTraffic.bytesPerSecond)} a second`,
  "bytes of a user's messages that came and are not read": `${n(droppedTraffic.burstBytes)} at once, ${n(droppedTraffic.bytesPerSecond)} a second`,
  "bytes that realtime sockets hold": `${n(realtimeBudget().memory.limits.user)} of a user, a quarter of the heap on a node`,
  "items of a conversation": `${n(maxItems)}, of ${n(maxItemBytes)} bytes together`,
  "answers outside of a conversation at a time": n(mostBeside),
  "`window_s`": `${windowSeconds.minimum} to ${windowSeconds.maximum}`,
  message: `${n(defaultSettings.frameBytes)} bytes`,
  "event of a realtime client": `${n(maxEventBytes)} bytes, ${n(maxJsonBytes)} without the audio of an \`append\``,
  "the same, read to its end": `${n(defaultSettings.discardedFrameBytes)} bytes`,
  "messages that wait to be read": `${n(defaultSettings.inboundBytes)} bytes, of a listener ${n(defaultSettings.unreadBytes)}`,
  [`of them those over ${n(defaultSettings.inboundPauseBytes)} bytes, of all sockets of a user`]: `half of what is free of ${n(defaultSettings.unreadBytes)} bytes`,
  "audio of a socket": `${audioAllowance.burst} s at once, then ${audioAllowance.perSecond} s a second`,
  "realtime events and detected speech of all sockets": `${threadShare.perSecond} ms of the gateway's thread a second, users in turn`,
  "answer to a ping": `${defaultSettings.webSocketIdleSeconds} s`,
}

/** Limits whose constants no file exports. Contract tests meet most of them. */
const unexported = [
  "time for a head",
  "credential",
  "speech of one reply",
  "reference clip",
  "`voice_transcript`",
  "reference clip from an address",
  "form fields of an upload",
  "result of a job",
  "live sessions of a model",
  "small messages (under 256 bytes)",
  "messages in one pass of the event loop",
  "messages on the completions socket",
  "generations on one completions socket",
  "realtime items that wait",
]

const rows = ["17.1", "17.2", "17.3", "17.4", "17.5"].flatMap(rowsOf)

it("limits are the constants of the code", () => {
  const documented = Object.fromEntries(rows.map(([name, value]) => [name, value]))
  for (const name of unexported) {
    expect([name, documented[name]]).toEqual([name, expect.stringMatching(/\d/)])
    delete documented[name]
  }
  expect(documented).toEqual(limits)
})

it("limits are moved by settings that exist", () => {
  const known = Object.values(settings).map(({ variable }) => variable as string)
  const pages = sections.map(({ text }) => text).join("\n")
  for (const [variable] of pages.matchAll(/\bEDGEWISE_[A-Z_]+/g)) expect(known).toContain(variable)
})

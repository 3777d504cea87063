// A conversation over a WebRTC call, as a browser makes it.
import { exchangeText, type Target } from "../client/Exchange.ts"
import { RequestFailed } from "../client/Failures.ts"
import { type FromCaller, startCaller } from "./CallerProcess.ts"
import type { Transport, TransportListener } from "./Transport.ts"

/**
 * Time that audio waits in a browser before it is played, milliseconds: its jitter buffer in Chromium on the same machine (measured). This caller
 * has none, so what it hears counts as heard so much later.
 */
export const browserBufferMs = 55

/** Bytes of an answer to an offer, at most. */
const mostAnswerBytes = 64 * 1024

/** Fails with RequestFailed. */
export const openCallTransport = async (
  target: Target,
  model: string,
  { ended, event, sound }: TransportListener,
): Promise<Transport> => {
  const offered = Promise.withResolvers<string>()
  const opened = Promise.withResolvers<void>()
  // Only one of the two is waited for.
  offered.promise.catch(() => {})
  opened.promise.catch(() => {})
  const end = (failure: RequestFailed): void => {
    offered.reject(failure)
    opened.reject(failure)
    ended(failure)
  }
  const left = () => end(new RequestFailed("closed early", "the call has ended"))
  const take = (message: FromCaller): void => {
    switch (message.t) {
      case "offer":
        return offered.resolve(message.sdp)
      case "open":
        return opened.resolve()
      case "event":
        return event(message.text, performance.now())
      case "sound":
        return sound(message.samples, performance.now())
      case "closed":
        return left()
      case "state":
        if (message.state === "failed")
          end(new RequestFailed("unreachable", "the call could not be connected: UDP does not pass"))
    }
  }
  const caller = startCaller(take, () =>
    end(
      new RequestFailed(
        "unreachable",
        "the process of the call has ended; where the WebRTC library is missing, `edgewise setup webrtc` installs it",
      ),
    ),
  )
  // Nothing is sent before something was spoken.
  caller.send({ t: "spoken", samples: new Int16Array(0) })
  const late = setTimeout(
    () => end(new RequestFailed("timeout", "the call was not connected")),
    target.timeoutMs,
  )
  const close = (): void => {
    caller.send({ t: "close" })
    setTimeout(() => caller.kill(), 1_000).unref()
  }
  try {
    const path = `/v1/realtime/calls?${new URLSearchParams({ model })}`
    const offer = { path, type: "application/sdp", body: await offered.promise, status: 201 }
    const signal = new AbortController().signal
    caller.send({ t: "answer", sdp: await exchangeText(target, { ...offer, signal }, mostAnswerBytes) })
    await opened.promise
  } catch (cause) {
    close()
    throw cause
  } finally {
    clearTimeout(late)
  }
  return {
    send: (one) => caller.send({ t: "event", text: JSON.stringify(one) }),
    say: (samples) => caller.send({ t: "spoken", samples }),
    waitingBytes: () => 0,
    close,
  }
}

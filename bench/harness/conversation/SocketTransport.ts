// A conversation over a WebSocket.
import { s16ToBytes } from "#domain/audio/Audio.ts"
import type { Target } from "../client/Exchange.ts"
import { oneLine, RequestFailed } from "../client/Failures.ts"
import { openSocket, socketUrl } from "../client/Socket.ts"
import type { Transport, TransportListener } from "./Transport.ts"

/** Fails with RequestFailed. */
export const openSocketTransport = async (
  target: Target,
  model: string,
  { ended, event }: TransportListener,
): Promise<Transport> => {
  const path = `/v1/realtime?${new URLSearchParams({ model })}`
  const socket = await openSocket(socketUrl(target, path), target, (data, isBinary) =>
    event(isBinary ? undefined : String(data), performance.now()),
  )
  socket.on("close", (code, reason) =>
    ended(
      new RequestFailed(
        "closed early",
        oneLine(`the conversation was closed with ${code} ${String(reason)}`),
      ),
    ),
  )
  if (socket.readyState !== 1) ended(new RequestFailed("closed early", "the conversation was closed at once"))
  const send = (one: object): void => socket.send(JSON.stringify(one))
  return {
    send,
    say: (samples) =>
      send({
        type: "input_audio_buffer.append",
        audio: Buffer.from(s16ToBytes(samples)).toString("base64"),
      }),
    waitingBytes: () => socket.bufferedAmount,
    close: () => socket.terminate(),
  }
}

// A network between a caller and a node that loses, delays and so reorders UDP packets in both directions.
import { createSocket, type Socket } from "node:dgram"

const bind = (socket: Socket) =>
  new Promise<number>((resolve) => socket.bind(0, "127.0.0.1", () => resolve(socket.address().port)))

/** @param port of the node */
export const startLossyRelay = async (
  port: number,
  loss: number,
  jitterMs: number,
): Promise<{ readonly port: number; readonly stop: () => void }> => {
  const front = createSocket("udp4")
  const back = createSocket("udp4")
  let caller: { readonly address: string; readonly port: number } | undefined
  let hasStopped = false
  const pass = (send: () => void): void => {
    if (Math.random() < loss) return
    setTimeout(() => hasStopped || send(), Math.random() * jitterMs)
  }
  front.on("message", (message, from) => {
    caller = from
    pass(() => back.send(message, port, "127.0.0.1"))
  })
  back.on("message", (message) =>
    pass(() => caller !== undefined && front.send(message, caller.port, caller.address)),
  )
  await bind(back)
  return {
    port: await bind(front),
    stop: () => {
      hasStopped = true
      front.close()
      back.close()
    },
  }
}

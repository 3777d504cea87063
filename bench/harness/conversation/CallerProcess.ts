// A caller of a node, with the WebRTC library: a process of its own, because the library must not run in two threads of one.
import { fork } from "node:child_process"

export type ToCaller =
  | { readonly t: "answer"; readonly sdp: string }
  | { readonly t: "event"; readonly text: string }
  /** s16 of 24 kHz, sent in real time, and silence behind it. */
  | { readonly t: "say"; readonly samples: Int16Array }
  /** s16 of 24 kHz, just spoken: sent at once, and from now on nothing else is sent. */
  | { readonly t: "spoken"; readonly samples: Int16Array }
  /** A packet as it is, on the audio's way. */
  | { readonly t: "raw"; readonly bytes: Uint8Array }
  | { readonly t: "close" }

export type FromCaller =
  | { readonly t: "offer"; readonly sdp: string }
  /** The data channel. */
  | { readonly t: "open" }
  | { readonly t: "closed" }
  | { readonly t: "state"; readonly state: string }
  | { readonly t: "event"; readonly text: string }
  | {
      readonly t: "packet"
      readonly sequence: number
      readonly timestamp: number
      readonly marker: boolean
    }
  /** s16 of 24 kHz: the decoded packets, in their order. */
  | { readonly t: "sound"; readonly samples: Int16Array }

export interface CallerProcess {
  readonly send: (message: ToCaller) => void
  readonly kill: () => void
}

/** @param onExit without `kill` it ends only where the library cannot be loaded, or after `close` */
export const startCaller = (
  onMessage: (message: FromCaller) => void,
  onExit: () => void = () => {},
): CallerProcess => {
  const child = fork(new URL("./callerMain.ts", import.meta.url), [], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  })
  child.on("message", onMessage)
  child.on("error", onExit)
  child.on("exit", onExit)
  return {
    send: (message) => {
      if (child.connected) child.send(message, undefined, undefined, () => {})
    },
    kill: () => void child.kill("SIGKILL"),
  }
}

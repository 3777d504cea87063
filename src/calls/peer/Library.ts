// The WebRTC library. It must not run in two threads of a process, so only programs that are processes of their own load it.
import * as datachannel from "node-datachannel"

export const library = datachannel

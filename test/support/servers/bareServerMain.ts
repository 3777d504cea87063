// A minimal server in a separate process: uWebSockets.js, one answer of a given size to every GET. The latency of its answers is the
// part of any latency that the machine causes.
import { App, us_socket_local_port } from "uWebSockets.js"

const body = "x".repeat(Number(process.argv[2]))

App()
  .get("/*", (res) => {
    res.end(body)
  })
  .listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("cannot listen")
    process.send?.(us_socket_local_port(socket))
  })
process.on("disconnect", () => process.exit(0))

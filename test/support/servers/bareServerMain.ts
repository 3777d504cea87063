// The smallest server: uWebSockets.js, one answer of a given size to every GET, in a process of its own. The wait of
// its callers is the machine's share of any wait.
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

// The server that calls are sent to, in a process of its own.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const server = createServer((request, response) => {
  request.resume();
  if (request.url === "/hang") return;
  request.on("end", () => response.end("ok"));
});
server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));

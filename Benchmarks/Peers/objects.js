// A worker of peers.py: `objects.js OBJECTS PORT`; `/` touches few objects, `/all` all,
// `/sum` is a checksum of all.
const http = require("http");
const [count, port] = process.argv.slice(2).map(Number);
const objects = Array.from({ length: count }, (_, n) => ({ number: n, text: `value ${n} of ${count}` }));

const checksum = () => {
  let value = 0;
  for (const one of objects) for (let i = 0; i < one.text.length; i++) value = (value * 31 + one.text.charCodeAt(i)) | 0;
  return value;
};

const server = http.createServer((request, response) => {
  const touched = request.url === "/all" ? objects : objects.slice(-1);
  const number = request.url === "/sum" ? checksum() : touched.reduce((sum, one) => sum + one.number + one.text.length, 0);
  const body = JSON.stringify([count, number]);
  response.writeHead(200, { "Content-Length": Buffer.byteLength(body) });
  response.end(body);
});
server.keepAliveTimeout = 600_000;
server.listen(port, "127.0.0.1");

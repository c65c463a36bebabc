// server.mjs PORT: as server.py, in node.
import http from 'node:http';
const heap = Array.from({ length: 20000 }, (_, i) => ({ i, text: `v${i * 7919}` }));
const digest = () => heap.reduce((sum, x) => (sum * 31 + x.i + x.text.length) % 1000000007, 7);
const first = digest();
let count = 0;
const server = http.createServer((request, response) => {
  count += 1;
  response.end(`${process.pid} ${count} ${digest() === first ? 'intact' : 'CHANGED'}\n`);
});
server.keepAliveTimeout = 0;
server.listen(Number(process.argv[2]), '127.0.0.1');

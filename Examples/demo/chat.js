// A chat room in node, all in memory; it is written without any knowledge of Dormouse.
//   node chat.js PORT
// GET / says hello and how often it has done so; GET /digest is a SHA-256 over the room.
'use strict';
const { createHash } = require('crypto');
const { createServer } = require('http');

const lines = Array.from({ length: 5000 }, (_, n) => ({ n, user: `user ${(n * 7919) % 97}`,
  text: `line ${(n * 2654435761) >>> 0} of a long evening` }));
let visits = 0;

const server = createServer((request, response) => {
  const text = request.url === '/digest'
    ? createHash('sha256').update(JSON.stringify(lines)).digest('hex')
    : `chat: visit ${++visits}`;
  response.writeHead(200, { 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
});
server.keepAliveTimeout = 0;  // clients stay connected for as long as they like
server.requestTimeout = 0;
server.listen(Number(process.argv[2]), '127.0.0.1',
  () => console.log(`ready on port ${process.argv[2]}`));

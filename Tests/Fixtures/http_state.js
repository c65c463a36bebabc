// An HTTP server with state in memory, for node without modules: what http_state.py is in python.
//   node http_state.js [--port 0] [--megabytes 8]
// GET /count /digest /get?KEY, POST /put?KEY=VALUE; prints `ready PORT`. There is no sd_notify:
// node has no datagram sockets of the Unix kind.
'use strict';
const { createHash } = require('crypto');
const { createServer } = require('http');

function option(name, otherwise) {
  const at = process.argv.indexOf('--' + name);
  return at < 0 ? otherwise : Number(process.argv[at + 1]);
}

const text = 'The dormouse sleeps through the winter, and wakes exactly as it was. '.repeat(40);
let seed = 42;
function random(below) {
  seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
  return (seed >>> 8) % below;
}

const notes = new Map();
for (let i = 0; i < option('megabytes', 8) * 900; i++) {
  const from = random(1000);
  notes.set(`note-${i}`, { title: `Note ${i} of ${random(1e6)}`, at: random(1e9),
    body: Buffer.from(text.slice(from, from + 600 + random(300))).toString('latin1'),
    tags: ['work', 'home', 'later'].slice(0, random(4)) });
}

let counter = 0;
const pairs = new Map();

function digest() {
  const sha = createHash('sha256');
  for (const [key, note] of notes) sha.update(key + JSON.stringify(note));
  for (const [key, value] of pairs) sha.update(`${key}=${value};`);
  return sha.digest('hex');
}

const answers = {
  '/count': () => ++counter,
  '/digest': digest,
  '/get': query => pairs.get([...query.keys()][0]) ?? '',
  '/put': query => {
    for (const [key, value] of query) pairs.set(key, value);
    return 'kept';
  },
};

const server = createServer((request, response) => {
  const url = new URL(request.url, 'http://localhost');
  const answer = answers[url.pathname];
  const body = answer ? `${answer(url.searchParams)}\n` : 'no such path\n';
  response.writeHead(answer ? 200 : 404, { 'Content-Type': 'text/plain',
    'Content-Length': Buffer.byteLength(body) });
  response.end(body);
});
server.keepAliveTimeout = 0;  // a connection may sleep as long as its worker
server.requestTimeout = 0;
server.listen(option('port', 0), '127.0.0.1', () => {
  console.log(`ready ${server.address().port}`);
});

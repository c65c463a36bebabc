// An HTTP server with state in memory, for node without modules: what http_state.py is in python.
//   node [--expose-gc] http_state.js [--port 0] [--megabytes 8] [--cache-mb 0]
// GET /count /digest /get?KEY /grow?mb=N /drop /sheds, POST /put?KEY=VALUE; prints `ready PORT`.
// SIGUSR1 sheds the cache (memory leaves at once where gc() is exposed). There is no sd_notify:
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
let sheds = 0;
let grown = [];
const pairs = new Map();
let cache = blocks(option('cache-mb', 0));

function blocks(megabytes) {
  return Array.from({ length: megabytes }, (_, n) => Buffer.alloc(1 << 20, `block ${n} `));
}

function collect() {
  if (global.gc) global.gc();
}

function digest() {
  const sha = createHash('sha256');
  for (const [key, note] of notes) sha.update(key + JSON.stringify(note));
  for (const [key, value] of pairs) sha.update(`${key}=${value};`);
  return sha.digest('hex');
}

const answers = {
  '/count': () => ++counter,
  '/digest': digest,
  '/sheds': () => sheds,
  '/get': query => pairs.get([...query.keys()][0]) ?? '',
  '/put': query => {
    for (const [key, value] of query) pairs.set(key, value);
    return 'kept';
  },
  '/grow': query => {
    grown.push(...blocks(Number(query.get('mb') ?? 1)));
    return `${grown.length} MB`;
  },
  '/drop': () => {
    grown = [];
    collect();
    return 'dropped';
  },
};

process.on('SIGUSR1', () => {
  cache = [];
  sheds += 1;
  collect();
});

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

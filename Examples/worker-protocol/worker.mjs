// A worker that sheds well, in twenty lines: docs/worker-protocol.md. Try it with
//
//     dormouse run cache -- env MALLOC_MMAP_THRESHOLD_=131072 node worker.mjs
//     dormouse warn cache
//
// Without that variable glibc's malloc raises the threshold once a large block was freed (mallopt(3)). Later
// blocks come from its heap, and a small block above them keeps the kernel from getting them back.
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc') // what isn't collected isn't given back
const gc = runInNewContext('gc')
const collect = () => { gc(); gc() } // the second waits for what the first frees on another thread
const cache = new Map()
const fill = () => { for (let key = 0; key < 32; key++) cache.set(key, randomBytes(1 << 18)) } // 8 MB

function answer(daemon, message) {
  if (['didEnterBackground', 'memoryWarning'].includes(message.type)) { cache.clear(); collect() }
  if (message.type === 'didEnterForeground') fill()
  if ('deadlineSeconds' in message) daemon.write(`{"type":"done","id":${message.id}}\n`)
}

function talk() {
  const daemon = connect(process.env.DORMOUSE_WORKER_SOCKET)
  daemon.write('{"type":"ready"}\n{"type":"snapshot","text":"a cache, in node"}\n')
  createInterface({ input: daemon }).on('line', line => answer(daemon, JSON.parse(line)))
    .on('error', () => {}) // it hears of the socket's errors, too
  daemon.on('error', () => {}).on('close', () => setTimeout(talk, 1000)) // for a new daemon
}
fill()
talk()

// A worker that sheds well, in twenty lines: docs/worker-protocol.md. Try it with
//
//     dormouse run cache -- node worker.mjs
//     dormouse warn cache
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

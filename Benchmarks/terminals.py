"""A terminal, and a program for it that stands in for an agent: it draws, holds objects, and may have an MCP server.

Keys: `s` reads all objects, `m` asks the MCP server for its tools, Ctrl-C ends it; others are text, and are echoed.
"""
import os
import pty
import select
import sys
import time

PROGRAM = r"""
const size = Number(process.argv[2]);
const command = process.argv.slice(3);
const kept = [];
for (let i = 0; i < size * 1000; i++) kept.push({id: i, text: 'message ' + i, list: Array(100).fill(i)});
process.stdin.setRawMode(true);
let shown = '';
function draw() { process.stdout.write('\x1b[H\x1b[2K> ' + shown + '\n'); }
process.stdin.on('data', data => {
  const key = data.toString();
  if (key === '\x03') process.exit(0);
  if (key === 's') {
    let sum = 0;
    for (const each of kept) sum += each.list[99] + each.text.length;
    process.stdout.write('<sum ' + sum + '>\n');
    return;
  }
  if (key === 'm') return ask('tools/list', {}, result => process.stdout.write('<tools ' + result.tools.length + '>\n'));
  shown = (shown + key).slice(-60);
  draw();
  process.stdout.write('<' + key + '>\n');
});
draw();

// Its MCP server, if there is a command: a child, with a JSON message a line.
let server, count = 0, rest = '';
const waiting = {};
function send(message) { server.stdin.write(JSON.stringify({jsonrpc: '2.0', ...message}) + '\n'); }
function ask(method, params, then) { waiting[++count] = then; send({id: count, method, params}); }
if (command.length) {
  server = require('child_process').spawn(command[0], command.slice(1), {stdio: ['pipe', 'pipe', 'ignore']});
  server.stdout.on('data', data => {
    const lines = (rest + data).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.result && waiting[message.id]) waiting[message.id](message.result);
    }
  });
  const client = {name: 'agent', version: '1'};
  ask('initialize', {protocolVersion: '2025-06-18', capabilities: {}, clientInfo: client}, () => {
    send({method: 'notifications/initialized'});
    process.stdout.write('<ready>\n');
  });
} else process.stdout.write('<ready>\n');
"""


class Terminal:
    def __init__(self, command, environment):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ.update(environment)
            os.execvp(command[0], command)
        # Another terminal's program would see this one's hang-up.
        os.set_inheritable(self.descriptor, False)
        self.shown = b""

    def wait(self, text, limit=120):
        end = time.monotonic() + limit
        while text.encode() not in self.shown:
            if time.monotonic() > end:
                sys.exit(f"terminal: no {text!r} in {self.shown[-500:]!r}")
            if select.select([self.descriptor], [], [], 1)[0]:
                self.shown += os.read(self.descriptor, 65536)
        found, _, self.shown = self.shown.partition(text.encode())
        return found

    def until(self, text):
        """What is shown before the next such text."""
        return self.wait(text).decode()

    def drain(self):
        """Forgets what is shown, until nothing has come for a moment."""
        self.shown = b""
        while select.select([self.descriptor], [], [], 0.3)[0]:
            os.read(self.descriptor, 65536)

    def press(self, key, text):
        """Milliseconds from the key to the text."""
        began = time.monotonic()
        os.write(self.descriptor, key.encode())
        self.wait(text)
        return (time.monotonic() - began) * 1000

    def close(self):
        """Types Ctrl-C, and waits for the program's end."""
        os.write(self.descriptor, b"\x03")
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)

import Testing

@testable import PolicyFile

@Suite struct `Declared workers that are wrong` {
  static let errors: [BadText] = [
    BadText("user: ''", "`user` must be a user's name or number, not empty"),
    BadText(
      "limits: { nofile: 64KB }",
      "`nofile` must be a whole number from 0, or `unlimited`, not `64KB`"),
    BadText(
      "limits: { nofiles: 1 }", "unknown key `nofiles` in `workers.w.limits`",
      "did you mean `nofile`?"),
    BadText(
      "limits: { core: { soft: 2MB, hard: 1MB } }",
      "the `soft` limit of `core` is over its `hard`"),
    BadText(
      "limits: { core: { soft: 2MB } }", "`core` needs `soft` and `hard`, or one value for both",
      "write `{ soft: …, hard: … }`"),
    BadText(
      "limits: { footprint: { warn: 2GB, hibernate: 1GB } }",
      "`hibernate` (1GB) is under `warn` (2GB)", "the order is `warn` ≤ `hibernate` ≤ `restart`"),
    BadText(
      "limits: { footprint: { warn: 2GB, restart: 1GB } }", "`restart` (1GB) is under `warn` (2GB)",
      "the order is `warn` ≤ `hibernate` ≤ `restart`"),
    BadText(
      "limits: { footprint: { sustained_for: 10s } }",
      "`footprint` needs `warn`, `hibernate` or `restart`",
      "write `footprint: { warn: 300MB, restart: 1GB }`"),
    BadText(
      "watchdog: { launch: 1m }",
      "`watchdog` is an interval here, such as `30s`; the deadlines are keys of `policy`",
      "write `policy: { watchdog: { launch: 1m } }`"),
    BadText("watchdog: 900ms", "`watchdog` must be at least `1s`", "write `watchdog: 30s`"),
    BadText("depends_on: [w]", "`w` depends on itself"),
    BadText("depends_on: [ww]", "`w` depends on `ww`, which does not exist", "did you mean `w`?"),
    BadText(
      "depends_on: { w2: { condition: redy } }",
      "`condition` must be `started`, `ready`, `exited_ok` or `exited`, not `redy`",
      "did you mean `ready`?"),
    BadText(
      "restart: sometimes",
      "`restart` must be `no`, `after-shortage`, `on-failure`, `always` or `unless-stopped`, not "
        + "`sometimes`"),
    BadText(
      "restart: { backoff: { initial: 1s } }", "`restart` needs `when`",
      "write `when: on-failure`, `always` or `unless-stopped`"),
    BadText(
      "restart: { when: always, backoff: { initial: 10s, max: 1s } }",
      "`max` (1s) is under `initial` (10s)"),
    BadText(
      "restart: { when: always, backoff: { factor: 0.5 } }",
      "`factor` must be a factor from 1 to 100, not `0.5`"),
    BadText("wake_at: 0 25 * * *", "`wake_at` has a wrong hour: `25` must be from 0 to 23"),
    BadText("wake_with: [w]", "`w` is woken with itself", "remove it from `wake_with`"),
    BadText(
      "wake_with: [w22]", "`w22`, which is woken with `w`, does not exist", "did you mean `w2`?"),
    BadText("wake_with: [w2, w2]", "`w2` is given twice in this list"),
    BadText("wake_with: w2", "`wake_with` must be a list in `[ ]`, not `w2`", "write `[w2]`"),
    BadText(
      "listen: 70000",
      "`listen` must be an address such as `8080`, `0.0.0.0:8080` or `/run/web.sock`,"
        + " not `70000`"),
    BadText(
      "listen: 'example.org:80'",
      "`listen` can't be at `example.org`: a socket is bound to a numeric address",
      "write `127.0.0.1:80`, or `*:80` for all addresses"),
    BadText(
      "listen: [80, '127.0.0.1:80']", "`127.0.0.1:80` is taken already, at etc/dormouse.yaml:1:37",
      "choose another port, path or address"),
    BadText(
      "health_checks_while_asleep: { port: 80, pth: / }",
      "`health_checks_while_asleep` has no key `pth`", "did you mean `path`?"),
    BadText(
      "readiness: { log_pattern: '(a*)(a*)\\1b' }",
      "`log_pattern` has a back-reference (`\\1`), which extended regular expressions don't have",
      "write the text again, or use `log_line`"),
    BadText(
      "readiness: { log_pattern: 'a(' }",
      "`log_pattern` isn't a regular expression: Unmatched ( or \\(",
      "`log_line` searches for plain text"),
    BadText(
      "readiness: { notify: true, periodSeconds: 1 }", "this key needs a probe, and there is none",
      "add `httpGet: { path: /healthz, port: 8080 }`, `exec` or `tcpSocket`"),
    BadText(
      "liveness: { tcpSocket: { port: 1 }, successThreshold: 2 }",
      "`successThreshold` must be 1 for `liveness`"),
    BadText("liveness: { httpGet: { path: / } }", "`httpGet` needs `port`"),
    BadText(
      "liveness: { httpGet: { port: 1, scheme: HTTPS } }",
      "`scheme` can't be `HTTPS`: the daemon has no TLS",
      "write `exec: { command: [curl, -fsk, \"https://…\"] }`"),
    BadText(
      "output: { keep: 3 }", "`keep` needs `max_size`: without it the log is never rotated",
      "write `max_size: 10MB`"),
    BadText(
      "stop_grace: 1s, policy: { terminate: { grace: 2s } }",
      "`stop_grace` is `policy.terminate.grace`, which is in line 1", "leave one of them out"),
    BadText(
      "env_file: none.env",
      "`env_file`: etc/none.env: the file can't be opened: No such file or directory"),
  ]

  @Test(arguments: errors)
  func `A wrong key of a declared worker gives one error that says what is wrong`(bad: BadText) {
    let other = bad.text.contains("w2") ? "w2: { command: b }, " : ""
    let errors = configuration("workers: { \(other)w: { command: a, \(bad.text) } }").errors
    #expect(errors.map(\.message) == [bad.message])
    #expect(errors.first?.suggestion == bad.suggestion)
  }
}

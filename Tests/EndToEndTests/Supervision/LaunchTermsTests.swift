import Control
import Glibc
import Linux
import TestSupport
import Testing

@Suite("What a declared worker runs with") struct LaunchTermsTests {
  @Test
  func `A daemon alone in its cgroup moves to a child group, so that memory limits work`() throws {
    guard TestMachine.hasCgroups else {
      return notTestedHere("no cgroup for workers can be made here")
    }
    let root = try CgroupRoot.detect(name: "dormouse-e2e-delegated-\(getpid())")
    let unit = try WorkerCgroup.create(in: root, name: "unit")
    let daemon = try TestDaemon(
      "workers: { own: { command: sleep 1000 } }\n", setting: .frozen,
      wrapper: ["sh", "-c", "echo $$ > \(unit.path)/cgroup.procs; exec \"$@\"", "sh"])
    try daemon.wait("own", toBe: "foreground")
    #expect(try readText("\(unit.path)/cgroup.procs").isEmpty)
    #expect(try readText("\(unit.path)/self/cgroup.procs") == "\(daemon.pid)\n")
    let group = try #require(try daemon.worker("own").cgroup?.path)
    #expect(group.hasPrefix("\(unit.path)/dormouse-"))
    // The next daemon finds the worker in that group.
    try daemon.restartAfterCrash()
    #expect(try eventually { (try? daemon.worker("own"))?.state == "foreground" })
    #expect(try daemon.worker("own").cgroup?.path == group)
    daemon.stop(timeout: .seconds(60))
    try unit.remove(until: Deadline(in: .seconds(60)))
    root.remove()
  }

  @Test(
    "A worker of another user has that user's rights, home and log, and can notify the daemon",
    .enabled(if: geteuid() == 0, "only root can start a worker as another user"),
    arguments: Nightly.one(of: Setting.ofTestUser))
  func anotherUser(setting: Setting) throws {
    let daemon = try TestDaemon(
      """
      workers:
        plain:
          command:
            - python3
            - -c
            - |
              import os, socket, time
              s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
              path = os.environ['NOTIFY_SOCKET']
              s.connect('\\0' + path[1:] if path[0] == '@' else path)
              print(os.getuid(), os.getgid(), os.getgroups(), os.environ['HOME'], flush=True)
              open('/dev/stdout', 'a').write('opened again\\n')
              s.send(b'READY=1\\nSTATUS=as another user')
              time.sleep(600)
          user: "65534"
          group: "65534"
          directory: /
          environment: { HOME: /tmp }
          readiness: { notify: true }
      """, setting: setting)
    try daemon.wait("plain", toBe: "foreground")
    try daemon.waitForWorkerLog("plain", "opened again")
    #expect(daemon.workerLog("plain").hasPrefix("65534 65534 [65534] /tmp\n"))
    #expect(try daemon.worker("plain").says == "as another user")
    // It sleeps and wakes as any other worker.
    let pid = try daemon.worker("plain").pid
    try daemon.done("hibernate", "plain")
    try daemon.done("foreground", "plain")
    #expect(try daemon.worker("plain").pid == pid)
    // A later daemon takes it over.
    try daemon.restartAfterCrash()
    #expect(try daemon.worker("plain").pid == pid)
    try daemon.done("stop", "plain")
  }

  @Test("A worker of an unknown user, or of another user without root, is refused with the reason")
  func refusedUsers() throws {
    let setting = Setting.available.contains(.ordinaryUser) ? Setting.ordinaryUser : .traced
    let daemon = try TestDaemon(
      """
      workers:
        root: { command: sleep 600, user: root, directory: /, autostart: false }
        unknown: { command: sleep 600, user: no-such-user, directory: /, autostart: false }
      """, setting: setting)
    let unknown = try daemon.verb("start", "unknown")
    #expect(unknown.code != 0)
    #expect("\(unknown)".contains("there is no user `no-such-user`"), "\(unknown)")
    guard setting == .ordinaryUser || geteuid() != 0 else { return }
    let refused = try daemon.verb("start", "root")
    #expect(refused.code != 0)
    #expect("\(refused)".contains("only root can start a worker"), "\(refused)")
  }

  @Test("Limits apply; an impossible one fails the start, and an unenforced memory limit is logged")
  func limits() throws {
    let daemon = try TestDaemon(
      """
      workers:
        small:
          command: [sh, -c, "ulimit -n; ulimit -Hn; ulimit -c; ulimit -t; exec sleep 600"]
          limits: { nofile: { soft: 64, hard: 128 }, core: 0B, cpu: 90s, memory: 64MB }
          directory: /
        large: { command: sleep 600, limits: { nofile: unlimited }, autostart: false }
      """)
    try daemon.waitForWorkerLog("small", "64\n128\n0\n90\n")
    // This setting has no cgroups.
    try daemon.waitForLogText("small: limits.memory, 64 MB, is not enforced")
    let refused = try daemon.verb("start", "large")
    #expect(refused.code != 0)
    #expect("\(refused)".contains("its limit `nofile` is over the hard limit"), "\(refused)")
  }

  @Test("A worker gets env_file's variables, its stop_signal, and SIGKILL after its stop_grace")
  func stopping() throws {
    let scratch = try Scratch()
    let file = try scratch.write("vars", "GREETING='from a file' # not this\nOTHER=file\n")
    let script = "trap 'echo interrupted; exit 3' INT; trap '' TERM; echo $GREETING $OTHER up; "
    let daemon = try TestDaemon(
      """
      policy_overrides: { terminate: { grace: 60s } }
      workers:
        polite:
          command: [sh, -c, "\(script) while :; do sleep 0.05; done"]
          env_file: \(file)
          environment: { OTHER: own }
          stop_signal: INT
          readiness: { log_line: up }
        deaf:
          command: [sh, -c, "trap '' TERM; echo up; while :; do sleep 0.05; done"]
          stop_grace: 200ms
          readiness: { log_pattern: "^up$" }
      """)
    for name in ["polite", "deaf"] {
      #expect(try eventually { try daemon.worker(name).state != "launching" })
    }
    #expect(daemon.workerLog("polite") == "from a file own up\n")
    try daemon.done("stop", "polite", "deaf")
    #expect(daemon.workerLog("polite").hasSuffix("interrupted\n"))
    #expect(try daemon.worker("deaf").lastExit?.text.contains("KILL") == true)
  }

  @Test("A worker survives writing to its notification_fd after its daemon was killed")
  func descriptorOutlivesDaemon() throws {
    let daemon = try TestDaemon(
      """
      workers:
        late:
          command: [sh, -c, "until [ -e go ]; do sleep 0.02; done; echo >&3; touch said; exec \
      sleep 600"]
          readiness: { notification_fd: 3 }
      """)
    #expect(try eventually { try daemon.worker("late").pid != nil })
    let pid = try daemon.worker("late").pid
    try daemon.crash()
    _ = try daemon.scratch.write("go", "")
    #expect(try eventually { access("\(daemon.scratch.path)/said", F_OK) == 0 })
    try daemon.start()
    #expect(try daemon.worker("late").pid == pid)
  }

  @Test("A log over its size is rotated while its worker writes, and a follower misses no line")
  func rotation() throws {
    let daemon = try TestDaemon(
      """
      workers:
        chatty:
          command:
            - python3
            - -c
            - |
              import os, time
              for n in range(30000):
                os.write(1, b'line %06d of some length to fill the file with\\n' % n)
                if n % 100 == 99: time.sleep(0.03)
              os.write(1, b'the end\\n')
              time.sleep(600)
          output: { file: ./chatty.log, max_size: 256KB, keep: 4 }
      """)
    let path = "\(daemon.scratch.path)/chatty.log"
    #expect(try eventually { access(path, F_OK) == 0 })
    #expect(try daemon.worker("chatty").log == path)
    var reader = try LogReader(LogLocation(path: path), lastLines: nil)
    var bytes: [UInt8] = []
    let end = Array("the end\n".utf8)
    let deadline = Deadline(in: .seconds(60))
    while bytes.suffix(end.count) != end[...], !deadline.hasPassed {
      let chunk = try reader.read()
      if chunk.isEmpty { usleep(2000) } else { bytes += chunk }
    }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    #expect(lines.last == "the end")
    // The lines are in order, and none comes twice. Each truncation of the file may lose one.
    let numbers = lines.compactMap {
      $0.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }
    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
    #expect(numbers.count >= 29_900, "\(numbers.count)")
    #expect(access(path + ".1", F_OK) == 0, "\(daemon.logText)")
    #expect(access(path + ".5", F_OK) != 0)
  }
}

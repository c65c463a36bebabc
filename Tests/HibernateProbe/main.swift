// A daemon that can be killed: for the tests of recovery, and of ordinary users' rights.
//
//   HibernateProbe serve FIFO CGROUP|- IMAGE -- COMMAND…
//     starts the command with its own stdin and stdout, then performs the FIFO's lines,
//     `hibernate`, `resume`, `suspend`, `trim`, `trim to image` and `fill`; writes `victim PID
//     STARTTIME`, `done BYTES` and errors to stderr. It ends with the FIFO.
//   HibernateProbe recover PID STARTTIME CGROUP|- IMAGE
//     recovers the worker of a daemon that has died.
//   HibernateProbe repair PID STARTTIME RECORD
//     puts a worker right whose daemon died while it trimmed it.
//   HibernateProbe trim PID MECHANISM CGROUP|- RECORD
//     trims a running process and its children by `processMadvise`, `reclaim` or `borrowedThread`,
//     or fills them by `fill`; prints the sizes in KB and the longest stop in µs.
//   HibernateProbe selfcheck ROUNDS DIRECTORY -- COMMAND…
//     hibernates and resumes the torture program; it must keep its sum. Prints `kept N rounds`.
//   HibernateProbe bench ROUNDS DIRECTORY CGROUP PORT PATH -- COMMAND…
//     measures the time to the first answer of a server on an open connection: SIGCONT alone,
//     eager, encrypted, with its files' pages dropped, lazy restore.
//   HibernateProbe second ROUNDS DIRECTORY CGROUP PORT PATH REQUESTS -- COMMAND…
//     repeatedly hibernates a server after REQUESTS requests: all pages, the pages that a
//     comparison shows as changed, the tracked pages. `PORT` in the command becomes each server's
//     own port. CGROUP has the groups `full`, `compared` and `tracked`.
//   HibernateProbe durable ROUNDS DIRECTORY CGROUP|- -- COMMAND…
//     hibernates and resumes a program that prints `ready`, with and without a wait for the disk.
//   HibernateProbe mortal ROUNDS DIRECTORY CGROUP|- -- COMMAND…
//     hibernates and resumes workers that are killed at random moments. Prints `outlived …`.
//   HibernateProbe protected PID
//     writes one byte of a read-only page of a process back to it, three times: untraced, from a
//     thread that traces it, and untraced again. Prints which attempts the kernel permits.
//   HibernateProbe pager [LOCK]: runs the standby pager, on descriptor 0. See `standBy`.
//
// With DORMOUSE_TEST_PROC_MEM set, only a thread that traces a process writes its read-only pages.
// DORMOUSE_STANDBY: `serve` starts a standby pager with this lock (`-`: none). DORMOUSE_OVERLAY
// (`tracked` or `compared`): `serve` keeps bases. DORMOUSE_RESUME: `serve` restores lazily.
// DORMOUSE_FAULT: the FaultPoint at which it kills itself; DORMOUSE_FAULT_STOPS: it stops there.
// DORMOUSE_CALLS: `CallsBeforeStop`. DORMOUSE_COUNTS: `trim to image` counts descriptor 3's bytes.
import CLinux
import Glibc
import Hibernation
import Linux
import TestSupport

func report(_ line: String) {
  var line = line + "\n"
  line.withUTF8 { _ = write(2, $0.baseAddress, $0.count) }
}

func fail(_ line: String) -> Never {
  report("error: \(line)")
  exit(1)
}

struct Usage: Error {}

func openGroup(_ path: String) throws -> WorkerCgroup? {
  path == "-" ? nil : try WorkerCgroup(path: path)
}

func start(
  _ command: ArraySlice<String>, input: Int32, output: Int32, cgroup: WorkerCgroup?
) throws -> SpawnedProcess {
  let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
  guard let name = command.first, let executable = resolveExecutable(name, path: path) else {
    throw Usage()
  }
  return try spawn(
    SpawnRequest(
      path: executable, arguments: Array(command), environment: ["PATH": path],
      directory: "/tmp", input: input, output: output, error: 2,
      cgroup: cgroup?.directory.raw))
}

func serve(_ arguments: ArraySlice<String>) throws {
  guard arguments.count >= 5, arguments[arguments.startIndex + 3] == "--" else { throw Usage() }
  let arguments = Array(arguments)
  let cgroup = try openGroup(arguments[1])
  let victim = try start(arguments[4...], input: 0, output: 1, cgroup: cgroup)
  report("victim \(victim.pid) \(victim.startTime)")
  let target = HibernationTarget(
    name: "victim", root: victim.identity, session: victim.pid, cgroup: cgroup)
  let overlays = getenv("DORMOUSE_OVERLAY").map { String(cString: $0) }
  var features = KernelFeatures.detect()
  if overlays == "compared" { features.writeTracking = false }
  let service = HibernationService(features: features)
  let isLazy = getenv("DORMOUSE_RESUME") != nil
  if let lock = getenv("DORMOUSE_STANDBY").map({ String(cString: $0) }) {
    service.set(try startStandby(lock))
  }
  let orders = try Descriptor.open(arguments[0])
  var text = ""
  while true {
    let bytes = try orders.read(upTo: 256)
    if bytes.isEmpty { return }
    text += String(decoding: bytes, as: UTF8.self)
    while let end = text.firstIndex(of: "\n") {
      let order = text[..<end]
      text = String(text[text.index(after: end)...])
      do {
        if order == "hibernate" {
          let missing = try service.freezeTrimmed(target.name)
          if missing == nil { try cgroup?.freeze(until: Deadline(in: .seconds(60))) }
          let request = HibernationRequest(
            target, to: arguments[2], restore: isLazy ? .lazy : .eager, overlay: overlays != nil)
          let summary = try service.wait { (h) throws(HibernationError) in
            try h.hibernate(request)
          }
          report("done \(summary.moved)")
        } else if order == "trim to image" {
          report("done \(try trim(target, toImage: arguments[2], by: service))")
        } else if order == "suspend" {
          report("done \(try service.freezeTrimmed(target.name)?.bytes ?? 0)")
        } else if order == "fill" {
          _ = try service.wait { (h) throws(HibernationError) in try h.fill(target) }
          report("done 0")
        } else if order == "trim" {
          report("done \(try trim(target, record: arguments[2] + ".trim", by: service))")
        } else if order == "settle" {
          try service.awaitFill(of: "victim")
          report("done 0")
        } else {
          let mode = isLazy ? RestoreMode.lazy(learns: true) : .eager
          let image = RestingImage(path: arguments[2], mode)
          let summary = try service.wait { (h) throws(HibernationError) in
            try h.resume(target, from: image, keepsBase: overlays != nil)
          }
          report("done \(summary.restored)")
        }
      } catch { report("error: \(error)") }
    }
  }
}

func executablePath() -> String {
  var buffer = [CChar](repeating: 0, count: 4096)
  let count = max(0, readlink("/proc/self/exe", &buffer, buffer.count))
  return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Sends requests to the torture program over its pipes.
struct Torture {
  let input: Descriptor
  let output: Descriptor

  func line() throws -> String {
    var bytes: [UInt8] = []
    while bytes.last != 10 {
      let byte = try output.read(upTo: 1)
      if byte.isEmpty { fail("the worker has closed its output") }
      bytes += byte
    }
    return String(decoding: bytes.dropLast(), as: UTF8.self)
  }

  func ask(_ question: String) throws -> String {
    try input.writeAll(question + "\n")
    return try line()
  }
}

func startTorture(
  _ command: ArraySlice<String>, cgroup: WorkerCgroup?
) throws -> (SpawnedProcess, Torture) {
  var ends: [Int32] = [0, 0, 0, 0]
  guard pipe(&ends) == 0, pipe(&ends[2]) == 0 else { fail("pipe") }
  let victim = try start(command, input: ends[0], output: ends[3], cgroup: cgroup)
  close(ends[0])
  close(ends[3])
  let torture = Torture(input: Descriptor(owning: ends[1]), output: Descriptor(owning: ends[2]))
  guard try torture.line().hasPrefix("ready") else { fail("not ready") }
  return (victim, torture)
}

func selfcheck(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count >= 4, let rounds = Int(arguments[0]), arguments[2] == "--" else {
    throw Usage()
  }
  let (victim, torture) = try startTorture(arguments[3...], cgroup: nil)
  defer { kill(victim.pid, SIGKILL) }
  let sum = try torture.ask("sum")
  let target = HibernationTarget(name: "victim", root: victim.identity, session: victim.pid)
  let service = HibernationService()
  let image = arguments[1] + "/image"
  for round in 1...max(1, rounds) {
    let slept = try service.wait { (h) throws(HibernationError) in
      try h.hibernate(HibernationRequest(target, to: image))
    }
    if slept.moved < 1 << 20 { fail("only \(slept.moved) bytes left memory") }
    _ = try service.wait { (h) throws(HibernationError) in
      try h.resume(target, from: RestingImage(path: image))
    }
    if try torture.ask("sum") != sum { fail("round \(round): the sum has changed") }
  }
  if try torture.ask("wake").hasPrefix("woke") == false { fail("its threads don't wake") }
  let errors = try torture.ask("errors")
  if errors != "errors 0 eintr 0" { fail(errors) }
  report("kept \(rounds) rounds as uid \(geteuid())")
}

func mortal(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count >= 5, let rounds = Int(arguments[0]), arguments[3] == "--" else {
    throw Usage()
  }
  let (cgroup, service) = (try openGroup(arguments[2]), HibernationService())
  var outcomes: [String: Int] = [:]
  var before: (descriptors: Int, threads: Int)?
  for round in 0...max(1, rounds) {
    let how = try outlive(arguments[4...], round, arguments[1] + "/image", cgroup, service)
    outcomes[how, default: 0] += 1
    // The first round opens descriptors that stay open.
    if round == 0 { before = (try count("fd"), try workingThreads()) }
  }
  guard let before else { return }
  let files = try count("fd")
  if files != before.descriptors { fail("\(files) descriptors, \(before.descriptors) before") }
  let deadline = Deadline(in: .seconds(60))
  while try workingThreads() > before.threads {
    if deadline.hasPassed { fail("\(try workingThreads()) threads, \(before.threads) before") }
    usleep(1000)
  }
  let remaining = try listDirectory(arguments[1])
  if !remaining.isEmpty { fail("left behind: \(remaining)") }
  report(
    "outlived " + outcomes.sorted { $0.key < $1.key }.map { "\($0) \($1)" }.joined(separator: ", "))
}

func count(_ what: String) throws -> Int { try listDirectory("/proc/self/\(what)").count }

/// Counts the threads of this process without those that wait for other work (`ShortThreads`).
func workingThreads() throws -> Int {
  // A thread that has ended meanwhile has no name.
  try listDirectory("/proc/self/task").compactMap { try? readText("/proc/self/task/\($0)/comm") }
    .count { $0 != "dormouse-idle\n" }
}

/// Kills one worker a short time after its hibernation or its resume has begun.
func outlive(
  _ command: ArraySlice<String>, _ round: Int, _ image: String, _ cgroup: WorkerCgroup?,
  _ service: HibernationService
) throws -> String {
  let (victim, torture) = try startTorture(command, cgroup: cgroup)
  _ = try torture.ask("sum")
  let target = HibernationTarget(
    name: "victim", root: victim.identity, session: victim.pid, cgroup: cgroup)
  let isForResume = round % 3 == 2
  let pid = victim.pid
  // Each round has another seed; each run has the same seeds.
  var random = TestRandom(seed: UInt64(round))
  let delay = UInt32.random(in: 0..<(isForResume ? 15_000 : 40_000), using: &random)
  func killLater() {
    _ = Thread.start(name: "killer") {
      usleep(delay)
      kill(pid, SIGKILL)
    }
  }
  var outcome = "killed too late"
  do {
    if !isForResume { killLater() }
    try cgroup?.freeze(until: Deadline(in: .seconds(60)))
    _ = try service.wait { (h) throws(HibernationError) in
      try h.hibernate(HibernationRequest(target, to: image))
    }
    if isForResume { killLater() }
    _ = try service.wait { (h) throws(HibernationError) in
      try h.resume(target, from: RestingImage(path: image))
    }
  } catch let error as HibernationError where error.aftermath == .vanished {
    outcome = "killed while \(error.phase.rawValue)"
  } catch { fail("round \(round): \(error)") }
  // The worker's end is reported now, with its status, because no process traces it any more.
  let ended = try pollDescriptor(victim.pidfd.raw, for: POLLIN, until: Deadline(in: .seconds(60)))
  if !ended { fail("round \(round): \(outcome), and its end isn't reported") }
  var status: Int32 = 0
  guard waitpid(pid, &status, WNOHANG) == pid, status & 0x7f == SIGKILL else {
    fail("round \(round): \(outcome), and its status is \(status)")
  }
  try cgroup?.thaw(until: Deadline(in: .seconds(60)))
  return outcome
}

alarm(300)  // This ends the process even if the test fails.
do {
  let arguments = CommandLine.arguments.dropFirst()
  if let calls = getenv("DORMOUSE_CALLS") { CallsBeforeStop.keep(in: String(cString: calls)) }
  switch arguments.first {
  case "serve": try serve(arguments.dropFirst())
  case "recover": try recover(arguments.dropFirst())
  case "repair": try repair(arguments.dropFirst())
  case "trim": try trim(arguments.dropFirst())
  case "protected": try protected(arguments.dropFirst())
  case "mortal": try mortal(arguments.dropFirst())
  case "pager": standBy(arguments.dropFirst().first)
  case "bench": try bench(arguments.dropFirst())
  case "durable": try durable(arguments.dropFirst())
  case "second": try second(arguments.dropFirst())
  case "selfcheck": try selfcheck(arguments.dropFirst())
  default: throw Usage()
  }
} catch { fail("\(error)") }

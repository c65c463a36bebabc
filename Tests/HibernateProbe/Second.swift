import Glibc
import Hibernation
import Linux

/// One server that is repeatedly hibernated in one way.
private final class Subject {
  let way: String
  let target: HibernationTarget
  let service: HibernationService
  let client: Client
  let image: String
  var times: [Double] = []
  var busy: [Double] = []
  var resumes: [Double] = []
  var answers: [Double] = []
  var written: [UInt64] = []
  var last: HibernationSummary?

  init(_ way: String, _ arguments: [String], _ number: Int) throws {
    self.way = way
    guard let port = UInt16(arguments[3]), let cgroup = try openGroup("\(arguments[2])/\(way)")
    else {
      throw Usage()
    }
    let ownPort = "\(port + UInt16(number))"
    let victim = try start(
      arguments[7...].map { $0 == "PORT" ? ownPort : $0 }[...], input: 0, output: 2, cgroup: cgroup)
    usleep(1_500_000)
    target = HibernationTarget(
      name: way, root: victim.identity, session: victim.pid, cgroup: cgroup)
    var features = KernelFeatures.detect()
    if way != "tracked" { features.writeTracking = false }
    service = HibernationService(features: features)
    image = "\(arguments[1])/\(way).image"
    client = try Client(port: port + UInt16(number), path: arguments[4])
    for _ in 0..<3 { try client.exchange() }
  }

  func round(requests: Int, counts: Bool) throws {
    let (target, image, overlays) = (target, image, way != "full")
    for _ in 0..<requests { try client.exchange() }
    try target.cgroup?.freeze(until: Deadline(in: .seconds(60)))
    let (begun, before) = (Clocks.monotonic, processorTime())
    let slept = try service.wait { (h) throws(HibernationError) in
      try h.hibernate(HibernationRequest(target, to: image, overlay: overlays))
    }
    let (ended, after) = (Clocks.monotonic, processorTime())
    last = slept
    usleep(20_000)
    let woken = Clocks.monotonic
    try client.send()
    _ = try service.wait { (h) throws(HibernationError) in
      try h.resume(target, from: RestingImage(path: image), keepsBase: overlays)
    }
    let back = Clocks.monotonic
    try client.receive()
    if counts {
      times.append(Double(ended - begun) / 1e6)
      busy.append(after - before)
      resumes.append(Double(back - woken) / 1e6)
      answers.append(Double(Clocks.monotonic - woken) / 1e6)
      written.append(slept.written)
    }
    usleep(20_000)
  }

  func end() { kill(target.root.pid, SIGKILL) }
}

/// The processor time of this process, in ms.
private func processorTime() -> Double {
  var usage = rusage()
  getrusage(RUSAGE_SELF.rawValue, &usage)
  let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
  return Double(seconds) * 1000 + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000
}

/// Measures every way once in each round, so that the measurements are interleaved.
func second(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count >= 8, let rounds = Int(arguments[0]), let requests = Int(arguments[5]),
    arguments[6] == "--"
  else { throw Usage() }
  let chosen = getenv("DORMOUSE_WAYS").map { String(cString: $0).split(separator: ",") }
  let ways = chosen?.map(String.init) ?? ["full", "compared", "tracked"]
  let subjects = try ways.enumerated().map {
    try Subject($1, arguments, $0)
  }
  defer { for subject in subjects { subject.end() } }
  for round in 0..<rounds {
    for subject in subjects { try subject.round(requests: requests, counts: round > 1) }
  }
  func median<Value: Comparable>(_ values: [Value]) -> Value { values.sorted()[values.count / 2] }
  func text(_ values: [Double]) -> String {
    let sorted = values.sorted()
    func tenths(_ index: Int) -> String { "\(Double(Int(sorted[index] * 10)) / 10)" }
    return "\(tenths(sorted.count / 2)) (\(tenths(0))–\(tenths(sorted.count * 95 / 100)))"
  }
  for subject in subjects {
    guard let last = subject.last else { continue }
    report(
      "\(subject.way): hibernate \(text(subject.times)), processor \(text(subject.busy)), "
        + "resume \(text(subject.resumes)) "
        + "answer \(text(subject.answers)) ms, written "
        + "\(median(subject.written) >> 10) KiB of \(last.moved >> 10) KiB moved, "
        + "compared \(last.compared >> 10) KiB, on disk \(last.imageLength >> 10) KiB"
        + (last.trackingRefusal.map { ", \($0)" } ?? ""))
  }
}

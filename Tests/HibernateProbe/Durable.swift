import Glibc
import Hibernation
import Linux

/// Measures the cost of waiting for the disk before pages are freed, and the cost of a resume:
/// rounds of both kinds, one after the other.
func durable(_ arguments: ArraySlice<String>) throws {
  let arguments = Array(arguments)
  guard arguments.count >= 5, let rounds = Int(arguments[0]), arguments[3] == "--" else {
    throw Usage()
  }
  let cgroup = try openGroup(arguments[2])
  var ends: [Int32] = [0, 0]
  guard pipe(&ends) == 0 else { fail("pipe") }
  let victim = try start(arguments[4...], input: 0, output: ends[1], cgroup: cgroup)
  defer { kill(victim.pid, SIGKILL) }
  close(ends[1])
  let output = Descriptor(owning: ends[0])
  guard String(decoding: try output.read(upTo: 64), as: UTF8.self).hasPrefix("ready") else {
    fail("not ready")
  }
  usleep(200_000)
  let target = HibernationTarget(
    name: "victim", root: victim.identity, session: victim.pid, cgroup: cgroup)
  let service = HibernationService()
  let image = arguments[1] + "/image"
  var times: [String: [Double]] = [:]
  var sizes = ""
  func note(_ name: String, _ duration: Duration) {
    times[name, default: []].append(Double(duration.components.attoseconds) / 1e15)
  }
  for round in 0..<rounds {
    for durability in ImageDurability.allCases {
      try cgroup?.freeze(until: Deadline(in: .seconds(60)))
      let slept = try service.wait { (h) throws(HibernationError) in
        try h.hibernate(
          HibernationRequest(target, to: image, storage: ImageStorage(durability: durability)))
      }
      sizes = "\(slept.moved >> 20) MB in \(slept.imageLength >> 20) MB"
      if round > 0 { note("hibernate, \(durability)", slept.duration) }
      let woken = try service.wait { (h) throws(HibernationError) in
        try h.resume(target, from: RestingImage(path: image))
      }
      if round > 0 { note("resume", woken.duration) }
    }
  }
  report(sizes)
  for (name, values) in times.sorted(by: { $0.key < $1.key }) {
    let sorted = values.sorted()
    func at(_ share: Double) -> Double {
      sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
    report("\(name): median \(at(0.5)) p95 \(at(0.95)) ms (\(values.count))")
  }
}

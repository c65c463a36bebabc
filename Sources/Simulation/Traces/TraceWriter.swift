import Policy

/// Writes a trace in any of the formats, as pieces of text. Values that a format can't hold are
/// lost: Azure's formats have neither launch times nor leaks, and that of 2019 has no exact times.
public struct TraceWriter {
  public let trace: Trace

  public init(_ trace: Trace) { self.trace = trace }

  /// A file of a format.
  public struct File {
    /// The name that the file has in the data sets.
    public var name: String
    /// Makes the file's content in pieces of text.
    public var makeText: (_ sink: (String) -> Void) -> Void
  }

  public func files(_ format: TraceFormat) -> [File] {
    switch format {
    case .dormouse: return [File(name: "trace.csv", makeText: writeDormouse)]
    case .azure2021:
      let name = "AzureFunctionsInvocationTraceForTwoWeeksJan2021.txt"
      return [File(name: name, makeText: writeInvocations)]
    case .azure2019:
      let days = max(1, Int((trace.length + 86_399_999) / 86_400_000))
      let invocations = (0..<days).map { day in
        let number = "\(day < 9 ? "0" : "")\(day + 1)"
        return File(name: "invocations_per_function_md.anon.d\(number).csv") {
          writeMinutes(day, $0)
        }
      }
      return invocations + [
        File(name: "function_durations_percentiles.anon.d01.csv", makeText: writeDurations),
        File(name: "app_memory_percentiles.anon.d01.csv", makeText: writeMemory),
      ]
    }
  }

  private func writeDormouse(_ sink: (String) -> Void) {
    sink("dormouse trace,1\nlength,\(trace.length)\n")
    for change in trace.others { sink("others,\(change.at),\(change.share * 100)\n") }
    for worker in trace.workers {
      let name = quoted(worker.name)
      let launch = Int64(worker.launch.milliseconds)
      sink(
        "worker,\(name),\(worker.footprint.bytes),\(launch),\(worker.leak.bytes),"
          + "\(worker.importance)\(worker.start == .absent ? "" : ",\(worker.start.rawValue)")\n")
    }
    for end in trace.ends { sink("end,\(end.at),\(name(end.worker))\n") }
    for use in trace.uses {
      let dormouse = use.isSelfInitiated ? ",own" : ""
      sink("use,\(use.at),\(name(use.worker)),\(use.duration),\(use.count)\(dormouse)\n")
    }
  }

  private func writeInvocations(_ sink: (String) -> Void) {
    sink("app,func,end_timestamp,duration\n")
    for use in trace.uses where !use.isSelfInitiated {
      let duration = Double(use.duration) / 1000
      let line = "\(name(use.worker)),main,\(Double(use.at) / 1000 + duration),\(duration)\n"
      for _ in 0..<use.count { sink(line) }
    }
  }

  private func writeMinutes(_ day: Int, _ sink: (String) -> Void) {
    let minutes = (1...1440).map(String.init).joined(separator: ",")
    sink("HashOwner,HashApp,HashFunction,Trigger,\(minutes)\n")
    var counts: [Int32: [Int32]] = [:]
    let start = Int64(day) * 86_400_000
    for use in trace.uses
    where !use.isSelfInitiated && use.at >= start && use.at < start + 86_400_000 {
      let minute = Int((use.at - start) / 60_000)
      counts[use.worker, default: Array(repeating: 0, count: 1440)][minute] += use.count
    }
    for (worker, perMinute) in counts.sorted(by: { $0.key < $1.key }) {
      let columns = perMinute.map { String($0) }.joined(separator: ",")
      sink("owner,\(name(worker)),main,http,\(columns)\n")
    }
  }

  private func writeDurations(_ sink: (String) -> Void) {
    sink("HashOwner,HashApp,HashFunction,Average,Count,Minimum,Maximum")
    for share in [0, 1, 25, 50, 75, 99, 100] { sink(",percentile_Average_\(share)") }
    sink("\n")
    let durations = Dictionary(grouping: trace.uses.filter { !$0.isSelfInitiated }, by: \.worker)
      .mapValues { $0.map(\.duration).sorted() }
    for (worker, sorted) in durations.sorted(by: { $0.key < $1.key }) {
      let mean = sorted.reduce(0) { $0 + Int($1) } / sorted.count
      let at = [0, 1, 25, 50, 75, 99, 100].map {
        sorted[min(sorted.count - 1, sorted.count * $0 / 100)]
      }
      let shares = at.map { String($0) }.joined(separator: ",")
      sink("owner,\(name(worker)),main,\(mean),\(sorted.count),\(at[0]),\(at[6]),\(shares)\n")
    }
  }

  private func writeMemory(_ sink: (String) -> Void) {
    sink("HashOwner,HashApp,SampleCount,AverageAllocatedMb")
    for share in [1, 5, 25, 50, 75, 95, 99, 100] { sink(",AverageAllocatedMb_pct\(share)") }
    sink("\n")
    for worker in trace.workers {
      let size = (Double(worker.footprint.bytes) / 1_048_576 * 100).rounded() / 100
      let columns = String(repeating: ",\(size)", count: 9)
      sink("owner,\(quoted(worker.name)),1\(columns)\n")
    }
  }

  private func name(_ worker: Int32) -> String { quoted(trace.workers[Int(worker)].name) }

  private func quoted(_ name: String) -> String {
    guard name.contains(where: { $0 == "," || $0 == "\"" }) else { return name }
    return "\"" + name.replacing("\"", with: "\"\"") + "\""
  }
}

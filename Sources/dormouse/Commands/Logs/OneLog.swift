import Control

/// One worker's output, byte for byte.
struct OneLog {
  var worker: String
  var connection: ConnectionOptions

  func show(lastLines: Int?, follow: Bool) throws {
    let log = try location()
    // The file is read without the daemon, and also past the end that it had at first.
    var reader = try LogReader(log, lastLines: lastLines)
    var filter = Terminal.isOutput ? TerminalFilter() : nil
    var last: String?
    while true {
      let bytes = try reader.read()
      if !bytes.isEmpty {
        try Output.write(filter?.filter(bytes) ?? bytes)
      } else if follow, last == nil {
        reader.waitForChange()
        last = endOfWriting()
      } else {
        // The file was read once more after the end was known, so all output has been printed.
        try Output.write(filter?.finish() ?? [])
        if let last { Output.complain(last) }
        return
      }
    }
  }

  /// Returns the reason why nothing more will be written; nil if more may be written.
  private func endOfWriting() -> String? {
    let answer = ConnectionOptions.askAcrossUpgrade { () -> String? in
      var daemon = try connection.connect()
      do {
        let report = try daemon.ask(.status, worker: worker).workers?.first
        return report?.isOver == true ? "\(escaped(worker)) has ended" : nil
      } catch let failure as CommandFailure where failure.exit == .unknownWorker {
        return "\(escaped(worker)) has been removed"
      }
    }
    guard let reason = answer else { return "the daemon has ended" }
    return reason
  }

  private func location() throws -> LogLocation {
    var daemon = try connection.connect()
    let report = try daemon.ask(.status, worker: worker, for: \.workers?.first)
    guard let log = LogLocation(report) else {
      throw CommandFailure(.notDone, "\(escaped(worker)) has no log")
    }
    return log
  }
}

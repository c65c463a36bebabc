import Control

/// The output of `footprint show`: a sentence, the plot, and the events.
///
/// - Parameter most: the maximum number of marks that are listed. nil: all.
public func renderRecording(
  _ recording: Recording, limit: Int64 = RecordingStatistics.defaultLimit,
  style: TerminalStyle, maxMarks: Int? = 20
) -> [String] {
  let statistics = RecordingStatistics(recording, limit: limit)
  let name = escaped(recording.header.name)
  var lines = [style.title("\(name): \(statistics.sentence)")]
  lines += StepPlot(recording, style: style).lines
  let events = recording.eventLines(statistics.warnings, ascii: style.ascii)
  lines += events.prefix(maxMarks ?? .max).flatMap { style.wrap($0.text, indent: $0.indent) }
  if let maxMarks, events.count > maxMarks {
    lines.append(style.fit("… and \(events.count - maxMarks) more (--marks all)"))
  }
  if recording.lostItsTail { lines.append("(the last line is incomplete and skipped)") }
  return lines
}

/// The picture of a running recording for the terminal: its last moments, and the current values.
public func renderLive(
  _ recording: Recording, style: TerminalStyle
) -> [String] {
  let statistics = RecordingStatistics(recording)
  let name = escaped(recording.header.name)
  let state = recording.state(at: .infinity).map { "\(escaped($0)), " } ?? ""
  let title = style.title(
    "\(name): \(state)\(shortSizeText(statistics.last)), peak \(shortSizeText(statistics.peak)), "
      + "\(durationText(statistics.seconds)); Ctrl-C ends it")
  return [title] + StepPlot(recording, style: style).lines
}

extension RecordingStatistics {
  /// One sentence with the numbers, without the worker's name.
  public var sentence: String {
    var clauses = [
      "peak \(shortSizeText(peak))", "\(shortSizeText(average)) on average",
      "\(shortSizeText(last)) at the end",
    ]
    if !warnings.isEmpty { clauses.append(counted(warnings.count, "warning")) }
    return clauses.joined(separator: ", ") + "; " + durationText(seconds)
  }
}

extension Recording {
  /// Returns a line for each mark that isn't part of another one, in the order of time, and the
  /// column at which its text begins.
  fileprivate func eventLines(
    _ effects: [WarningEffect], ascii: Bool
  ) -> [(text: String, indent: Int)] {
    let resolution = max(header.every, 0.001)
    var effects = effects[...]
    var rows: [(moment: String, kind: FootprintMark.Kind, text: String)] = []
    for mark in marks {
      var text = mark.sentence
      // Warnings and their effects are in the same order.
      if mark.kind == .warning, let effect = effects.popFirst() { text = effect.sentence }
      rows.append((momentText(mark.at, step: resolution), mark.kind, text))
    }
    if let end { rows.append((momentText(end.at, step: resolution), .note, end.sentence)) }
    rows.removeAll { $0.kind.symbol(ascii: ascii) == nil }
    let width = rows.map(\.moment.count).max() ?? 0
    return rows.map { row in
      let symbol = row.kind.symbol(ascii: ascii) ?? " "
      let moment = padded(row.moment, to: width, alignsRight: true)
      return ("\(moment)  \(symbol)  \(row.text)", width + 5)
    }
  }
}

extension FootprintMark {
  /// One line that is safe for a terminal.
  public var sentence: String {
    guard kind == .state, let to else { return escaped(text) }
    let change = from.map { $0 == to ? to : "\($0) → \(to)" } ?? to
    return text.isEmpty ? escaped(change) : escaped("\(change): \(text)")
  }
}

extension RecordingEnd {
  public var sentence: String {
    switch reason {
    case .time: return "end of the time given"
    case .interrupted: return "stopped by you"
    case .gone: return "the worker or its daemon ended"
    case .failed: return "measuring failed"
    case .exited:
      if let signal { return "the program was ended by signal \(signal)" }
      return code.map { "the program ended with code \($0)" } ?? "the program ended"
    }
  }
}

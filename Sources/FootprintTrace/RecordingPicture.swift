import Control
import Drawing

extension Recording {
  /// Draws an SVG: the footprint by kind, the worker's states, and the events. The picture has its
  /// own background, which is dark if the viewer prefers that.
  public func picture(limit: Int64 = RecordingStatistics.defaultLimit) -> String {
    RecordingPicture(recording: self, limit: limit).text
  }
}

private struct RecordingPicture {
  let recording: Recording
  let limit: Int64
  let statistics: RecordingStatistics
  let frame: PictureFrame

  init(recording: Recording, limit: Int64) {
    self.recording = recording
    self.limit = limit
    statistics = RecordingStatistics(recording, limit: limit)
    frame = PictureFrame(maxBytes: statistics.peak, seconds: recording.seconds)
  }

  var text: String {
    let name = shortened(escaped(recording.header.name), to: 60)
    let events = statistics.warnings.map {
      "At \(momentText($0.at, step: 0.1)) it was \($0.sentence)."
    }
    let foot = PictureFrame.lower + (states.isEmpty ? 44 : 78)
    return PictureFrame.document(
      height: foot + 18, title: "Footprint of \(name)",
      description: ([summary] + events).joined(separator: " "), subtitle: statistics.sentence,
      legend + frame.grid + areas + frame.limitLine(limit) + marks + strip
        + [svgText(24, foot, origin, size: 11, kind: "dim")])
  }

  /// The line that names the subject, the machine and the time.
  private var origin: String {
    let header = recording.header
    let host = header.host.map { host in
      "\(counted(host.cores, "core")), \(shortSizeText(host.memory)), Linux \(escaped(host.kernel))"
    }
    return [shortened(shellText(header.command), to: 80), host, escaped(header.time)]
      .compactMap { $0?.isEmpty == true ? nil : $0 }.joined(separator: "; ")
  }

  private var summary: String {
    "The footprint of \(escaped(recording.header.name)) over \(durationText(recording.seconds)), "
      + "as steps: it began at \(shortSizeText(statistics.start)), was highest at "
      + "\(shortSizeText(statistics.peak)) after \(momentText(statistics.peakAt, step: 0.1)), "
      + "and ended at \(shortSizeText(statistics.last))."
  }

  // MARK: kinds of memory

  private typealias Kind = (name: String, title: String, upTo: @Sendable (FootprintSample) -> Int64)

  /// Each kind is drawn on top of the kinds before it.
  private static let kinds: [Kind] = [
    ("anonymous", "private, anonymous", { $0.anonymous }),
    ("copied", "copied from files", { $0.anonymous + $0.copied }),
    ("shared", "shared memory", { $0.anonymous + $0.copied + $0.shared }),
    ("swapped", "in swap", { $0.footprint }),
  ]

  private var present: [Kind] {
    var below: (FootprintSample) -> Int64 = { _ in 0 }
    return Self.kinds.filter { kind in
      defer { below = kind.upTo }
      return recording.samples.contains { kind.upTo($0) > below($0) }
    }
  }

  /// The areas of the kinds. The highest area comes first, so that each later area covers the part
  /// of it that belongs to other kinds.
  private var areas: [String] {
    let path = StepPath(recording, frame)
    return present.reversed().map { kind in
      "<path class=\"\(kind.name)\" d=\"\(path.area(kind.upTo))\"/>"
    } + ["<path class=\"outline\" d=\"\(path.outline(\.footprint))\"/>"]
  }

  private var legend: [String] {
    var x = PictureFrame.left
    return present.flatMap { kind in
      defer { x += 40 + Double(kind.title.count) * 6.2 }
      return [
        """
        <rect class="\(kind.name)" x="\(fixed(x, 1))" y="66" width="11" height="11" rx="2"/>
        """,
        svgText(x + 17, 76, kind.title, size: 11, kind: "dim"),
      ]
    }
  }

  // MARK: what happened

  private var marks: [String] {
    // There are two rows of labels. A mark without room in either has only its line and tooltip.
    var free = [0.0, 0.0]
    return statistics.warnings.flatMap { warning in
      let x = frame.x(warning.at)
      let text = warning.givenBack > 0 ? "▼ −\(shortSizeText(warning.givenBack))" : "▼ nothing"
      let width = Double(text.count) * 6.6
      let start = min(max(x - 4, PictureFrame.left), PictureFrame.right - width)
      var lines = ["<g><title>\(xmlText(warning.sentence))</title>"]
      lines.append(svgLine(x, PictureFrame.upper - 6, x, PictureFrame.lower, kind: "mark"))
      if let lane = free.firstIndex(where: { $0 <= start }) {
        free[lane] = start + width + 8
        lines.append(
          svgText(
            start, PictureFrame.upper - 10 - Double(lane) * 14, text, size: 11, kind: "warned"))
      }
      return lines + ["</g>"]
    }
  }

  private struct Stretch {
    var state: String
    var from: Double
    var to: Double
  }

  /// The worker's states in the order of time.
  private var states: [Stretch] {
    let changes = recording.marks.filter { $0.kind == .state && $0.to != nil }
    var stretches: [Stretch] = []
    if let first = recording.state(at: -1) {
      stretches.append(Stretch(state: first, from: 0, to: recording.seconds))
    }
    for change in changes {
      if !stretches.isEmpty { stretches[stretches.count - 1].to = change.at }
      stretches.append(Stretch(state: change.to ?? "", from: change.at, to: recording.seconds))
    }
    return stretches
  }

  /// The strip of states below the time axis.
  private var strip: [String] {
    let stableStates = ["foreground", "background", "suspended", "hibernated", "terminated"]
    let y = PictureFrame.lower + 32
    return states.flatMap { stretch in
      let (from, to) = (frame.x(stretch.from), frame.x(stretch.to))
      let kind = stableStates.contains(stretch.state) ? stretch.state : "moving"
      let name = escaped(stretch.state)
      var elements = [
        """
        <g><title>\(xmlText(name)), \(xmlText(durationText(stretch.to - stretch.from)))</title>\
        <rect class="\(kind)" x="\(fixed(from, 1))" y="\(fixed(y, 1))" \
        width="\(fixed(max(0, to - from), 1))" height="20"/></g>
        """
      ]
      if to - from > Double(name.count) * 6.4 + 10 {
        elements.append(
          svgText((from + to) / 2, y + 14, name, size: 11, kind: "strip", anchor: "middle"))
      }
      return elements
    }
  }
}
